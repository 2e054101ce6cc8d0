"""Loads studies, by importing a folder's figures.py, and makes new ones from the template."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from mpisim.analysis.study.figure import Figure, Study
from mpisim.core.errors import InputError, import_failure
from mpisim.core.files import writing

FILE = "figures.py"
CONTENT = ("README.md", FILE, "plugin.py", "fig1.toml", "CITATION.cff", "LICENSE")  # of a new one
STUDIES = Path("run")  # where `mpisim study --draw` and make look for studies
ROOT = Path(__file__).resolve().parents[3]  # the repository, where mpisim runs from one


def load(folder: Path) -> Study:
    """The study in ``folder``; `InputError` with file and line where its figures.py is wrong.

    The folder is imported as a package under a name of its own, so that its modules may import
    each other (``from . import claims``) and two studies may both have a module ``claims``.
    """
    file = folder / FILE
    if not file.is_file():
        new = "`mpisim new study FOLDER` makes one"
        raise InputError(f"{folder}: not a study, it has no {FILE}; {new}")
    try:
        module = importlib.import_module(f"{_package(folder.resolve())}.{file.stem}")
    except Exception as error:
        raise InputError(f"{file}: cannot be loaded: {import_failure(error, __file__)}") from None
    figures = getattr(module, "FIGURES", None)
    if not isinstance(figures, list) or not all(isinstance(one, Figure) for one in figures):
        raise InputError(f"{file}: FIGURES: {figures!r}; it must be a list of Figure(...)")
    by_name = {figure.name: figure for figure in figures}
    if len(by_name) < len(figures):
        raise InputError(f"{file}: FIGURES: two figures have the same name")
    return Study(folder, (module.__doc__ or "").strip().partition("\n")[0], by_name)


def studies(folder: Path) -> list[Study]:
    """The studies that are folders of ``folder``, by name; `InputError` without any."""
    files = sorted(folder.glob(f"*/{FILE}"))
    if not files:
        raise InputError(f"{folder}: no study there (a folder with {FILE})")
    return [load(file.parent) for file in files]


def quotes(file: str) -> dict[str, Any]:
    """What a paper says, by name: ``quotes.toml`` beside a ``__file__`` of the study."""
    return tomllib.loads(Path(file).with_name("quotes.toml").read_text(encoding="utf-8"))


def find(name: str) -> tuple[Study, Figure]:
    """The figure ``STUDY-FIGURE`` of a study in the current folder, in its folder run/, or in the
    repository's, whichever has it first."""
    places = [place for place in (Path(), STUDIES, ROOT / STUDIES) if any(place.glob(f"*/{FILE}"))]
    figures: dict[str, tuple[Study, Figure]] = {}
    for place in places or [STUDIES]:
        for one in studies(place):
            figures = {one.full_name(f): (one, f) for f in one.figures.values()} | figures
    if name not in figures:
        raise InputError(f"figure {name!r}: unknown; known: {', '.join(figures)}")
    return figures[name]


def _package(folder: Path) -> str:
    """A package whose modules are the files of ``folder``."""
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    name = re.sub(r"\W", "_", f"study_{folder.name}_{digest}")
    if name not in sys.modules:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]
    importlib.invalidate_caches()
    return name


def create(folder: Path) -> list[Path]:
    """Write a study that runs as it is into a new or empty folder; returns its files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists already; name a new folder")
    written = []
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in CONTENT:
            suffix = ".txt" if name.endswith(".py") else ""
            template = files(__package__).joinpath("template", name + suffix)
            text = template.read_text(encoding="utf-8")
            text = text.replace("STUDY", folder.resolve().name).replace("FOLDER", str(folder))
            written.append(folder / name)
            written[-1].write_text(text, encoding="utf-8")
    return written
