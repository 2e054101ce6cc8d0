"""Makes a plugin, and its test, from a template."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from mpisim.compressors.base import COMPRESSORS
from mpisim.core.errors import InputError, OutputError
from mpisim.core.registry import Names
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
KINDS: dict[str, Names] = {
    "compressor": COMPRESSORS,
    "estimator": METHODS,
    "problem": PROBLEMS,
}


def create(kind: str, name: str, folder: Path) -> list[Path]:
    """Write a plugin that passes `mpisim check` as it is, and its test; returns the two files.

    kind : one of `KINDS`
    name : in experiments; the file is named after it, ``-`` as ``_``

    `InputError` if mpisim or another plugin has the name, if it cannot be that of a module, or if a
    file exists.
    """
    stem = name.replace("-", "_")
    if not NAME.fullmatch(name) or keyword.iskeyword(stem):
        allowed = "letters, digits, '-' and '_', a letter first, and no keyword of Python"
        raise InputError(f"{name!r} is not allowed as a name; it must have {allowed}")
    if name in KINDS[kind]:
        raise InputError(f"the {kind} {name!r} exists already; choose another name")
    targets = {folder / f"{stem}.py": kind, folder / f"test_{stem}.py": f"test_{kind}"}
    for path in targets:
        if path.exists():
            raise InputError(f"{path}: exists already; choose another name or folder")
    if stem in sys.stdlib_module_names or find_spec(stem) is not None:
        raise InputError(f"{name!r}: Python has another module {stem!r}; choose another name")
    words = {"NAME": name, "FILE": stem, "LABEL": _class(stem), "CLASS": _class(stem)}
    for path, template in targets.items():
        _write(path, template, words)
    return list(targets)


def _class(stem: str) -> str:
    """``FirstK`` for ``first_k``."""
    return "".join(part[:1].upper() + part[1:] for part in stem.split("_"))


def _write(path: Path, template: str, words: dict[str, str]) -> None:
    file = files(__package__).joinpath("template", f"{template}.py.txt")
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"\b(NAME|FILE|LABEL|CLASS)\b", lambda match: words[match[0]], text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as plugin:
            plugin.write(text)
    except FileExistsError:
        raise InputError(f"{path}: exists already; choose another name or folder") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
