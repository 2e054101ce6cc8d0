"""Which modules a module imports, by its source, and digests of sources."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
IMPORT = re.compile(
    r"[\n;:][ \t]*"  # no ^, with which the search is slow
    r"(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n;]*)|import[ \t]+([\w., \t]+))"
)
CONTINUED = re.compile(r"^([^#\n]*)\\\n", re.MULTILINE)  # a comment is not
DIGITS = 12  # of a sha256
DIGESTS: dict[Path, str] = {}  # of files that are loaded
INSTALLED = {"site-packages", "dist-packages"}


def file_of(name: str) -> Path | None:
    """The source of a module; None for one that was typed in, or is the script itself."""
    if name == "mpisim" or name.startswith("mpisim."):
        return _package_file(name, PACKAGE)
    file = getattr(sys.modules.get(name), "__file__", None)
    return None if file is None or name == "__main__" else Path(file)


@cache
def _package_file(name: str, package: Path) -> Path:
    path = package.parent.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def digest(path: Path) -> str:
    """Of a module's source as it is when a process first asks, which has loaded it by then."""
    if path not in DIGESTS:
        DIGESTS[path] = short(path.read_bytes())
    return DIGESTS[path]


def short(content: bytes) -> str:
    """The first digits of a sha256."""
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def reached(names: Iterable[str], wanted: Callable[[str, Path], bool]) -> dict[str, Path]:
    """{module: file} of ``names`` and all that they import, as far as it is ``wanted``."""
    files: dict[str, Path] = {}
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        path = file_of(name)
        if name not in files and path is not None and wanted(name, path):
            files[name] = path
            waiting += imports(name, path)
    return files


def neighbours(path: Path) -> dict[str, Path]:
    """{module: file} of the modules in a file's folder that it imports, or that these import."""
    files: dict[str, Path] = {}
    waiting = [path]
    for file in waiting:
        for source, _, plain in _statements(file):
            for name in (word.split()[0] for word in (source or plain).split(",") if word.split()):
                there = path.with_name(f"{name}.py")
                if name not in (*files, *sys.stdlib_module_names) and there.is_file():
                    files[name] = there
                    waiting.append(there)
    return files


@cache
def imports(name: str, path: Path) -> tuple[str, ...]:
    """The modules of mpisim, or of a plugin's own folder, that a module imports.

    An environment in that folder is no part of it. A compiled module imports nothing.
    """
    if path.suffix != ".py":
        return ()
    modules: list[str] = []
    for source, names, plain in _statements(path):
        if plain:
            modules += [word.split(" as ")[0].strip() for word in plain.split(",")]
        else:
            source = _absolute(source, name, path)
            listed = re.sub(r"#.*", "", names).strip("() \t").replace("\n", " ").split(",")
            words = [word.split(" as ")[0].strip() for word in listed]
            modules += [_home(source, word) for word in words if word]
    return tuple(other for other in modules if _followed(other, name, path))


def _statements(path: Path) -> list[tuple[str, str, str]]:
    """The source, names and modules of each import in a file, also those that share a line."""
    text = "\n" + path.read_text(encoding="utf-8", errors="replace")
    return IMPORT.findall(CONTINUED.sub(r"\1 ", text) if "\\\n" in text else text)


def _absolute(source: str, name: str, path: Path) -> str:
    """``source`` as the module ``name`` imports it, without leading dots."""
    rest = source.lstrip(".")
    up = len(source) - len(rest) - (path.name == "__init__.py")
    if rest == source:
        return source
    return ".".join(filter(None, [*name.split(".")[: -up or None], rest]))


def _home(source: str, name: str) -> str:
    """The module that defines ``name``, which was imported from ``source``."""
    inner, path = f"{source}.{name}", file_of(source)
    if path is None or path.name != "__init__.py":
        return source
    if inner in sys.modules or (path.parent / f"{name}.py").exists():
        return inner
    try:
        home = getattr(getattr(sys.modules.get(source), name, None), "__module__", None)
    except ImportError:  # an optional part of the package
        home = None
    return home if isinstance(home, str) and home.startswith(source) else source


def _followed(other: str, name: str, path: Path) -> bool:
    if other == "mpisim" or other.startswith("mpisim."):
        source = file_of(other)
        return source is not None and source.exists()
    if name.startswith("mpisim."):
        return False
    neighbour = file_of(other)
    if "." in name:  # of a package: all of it
        return neighbour is not None and other.partition(".")[0] == name.partition(".")[0]
    if neighbour is None or path.parent not in neighbour.parents:
        return False
    below = neighbour.relative_to(path.parent.parent).parts
    return not INSTALLED & set(below) and other.partition(".")[0] not in sys.stdlib_module_names
