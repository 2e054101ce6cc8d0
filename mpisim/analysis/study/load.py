"""Loading studies: a folder's figures.py, imported as a module of a package of its own."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from mpisim.analysis.study.spec import Figure, Study
from mpisim.core.errors import InputError, MpisimError
from mpisim.problems.data.find import ROOT

FILE = "figures.py"
STUDIES = Path("run")  # where `mpisim figure` and make look for studies


def load(folder: Path) -> Study:
    """The study in ``folder``.

    The folder is imported as a package under a name of its own, so that its modules may import
    each other (``from . import claims``) and two studies may both have a module ``claims``. Raises
    `InputError`, with file and line, where figures.py is missing or wrong.
    """
    if not (folder / FILE).is_file():
        raise InputError(
            f"{folder}: not a study, it has no {FILE}; `mpisim new study FOLDER` makes one"
        )
    package = _package(folder.resolve())
    try:
        module = importlib.import_module(f"{package}.{Path(FILE).stem}")
    except Exception as error:
        raise InputError(_where(error, folder)) from None
    title = (module.__doc__ or "").strip().partition("\n")[0]
    return Study(folder, title, package, _checked(folder / FILE, module))


def studies(folder: Path) -> list[Study]:
    """The studies that are folders of ``folder``, by name; `InputError` without any."""
    files = sorted(folder.glob(f"*/{FILE}"))
    if not files:
        raise InputError(f"{folder}: no study there, that is a folder with {FILE}")
    return [load(file.parent) for file in files]


def home() -> Path:
    """``run`` of the current folder, else of the repository that mpisim runs from."""
    own = ROOT / STUDIES
    return own if not STUDIES.is_dir() and own.is_dir() else STUDIES


def find(name: str) -> tuple[Study, Figure]:
    """The figure ``STUDY-FIGURE`` of a study in `home`; `InputError` lists what there is."""
    known = {
        s.full_name(figure): (s, figure) for s in studies(home()) for figure in s.figures.values()
    }
    if name not in known:
        raise InputError(f"figure {name!r}: unknown; known: {', '.join(known)}")
    return known[name]


def _package(folder: Path) -> str:
    """An empty package whose modules are the files of ``folder``."""
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    name = re.sub(r"\W", "_", f"study_{folder.name}_{digest}")
    if name not in sys.modules:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]
    importlib.invalidate_caches()
    return name


def _checked(file: Path, module: ModuleType) -> dict[str, Figure]:
    figures = getattr(module, "FIGURES", None)
    if not isinstance(figures, list | tuple) or not figures:
        raise InputError(f"{file}: FIGURES is missing; it must be a list of figures, not empty")
    for place, figure in enumerate(figures):
        if not isinstance(figure, Figure):
            raise InputError(f"{file}: FIGURES[{place}] is {figure!r}; it must be a Figure(...)")
    by_name = {figure.name: figure for figure in figures}
    if len(by_name) < len(figures):
        names = [figure.name for figure in figures]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{file}: two figures are called {twice!r}")
    return by_name


def _where(error: Exception, folder: Path) -> str:
    """One line: the file and line of the study that caused the error, and what it is."""
    said = " ".join(str(error).split())
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(folder.resolve())
    ]
    at = f"{own[-1].filename}, line {own[-1].lineno}" if own else str(folder / FILE)
    kind = "" if isinstance(error, MpisimError) else f"{type(error).__name__}: "
    return f"{at}: {kind}{said}"
