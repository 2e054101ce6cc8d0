"""Draws the figures of a study and reports their state."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis import panels
from mpisim.analysis.claims import SUFFIX, Claim, counts, read, table, write
from mpisim.analysis.plot import SUFFIXES, save
from mpisim.analysis.study.spec import Figure, Study
from mpisim.core.errors import InputError


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure of a study, drawn and judged.

    picture : a matplotlib figure; left : a line for each run that is not drawn
    """

    study: Study
    figure: Figure
    picture: Any
    claims: Sequence[Claim]
    left: Sequence[str]


def draw(study: Study, figure: Figure, logs: Path | None = None) -> Drawn:
    """Draw a figure and judge its claims.

    ``logs`` is the folder of the numbers, the figure's own if None. `InputError` where there are
    none.
    """
    found, left = figure.source.read(logs or figure.source.folder(study.folder))
    with panels.styled():
        picture = figure.draw(found)
    return Drawn(study, figure, picture, list(figure.claims(found)), left)


def write_drawn(drawn: Drawn, out: Path) -> str:
    """Write OUT/STUDY-FIGURE.png, .pdf and .claims.json; the claims as a table."""
    name = drawn.study.full_name(drawn.figure)
    pictures = [out / f"{name}{suffix}" for suffix in SUFFIXES]
    for path in pictures:
        save(drawn.picture, path)
    files = [*pictures, write(out / f"{name}{SUFFIX}", drawn.claims)]
    return "\n".join([*drawn.left, table(name, drawn.claims), "", ", ".join(map(str, files))])


def overview(study: Study, scale: str, out: Path, ranks: int) -> str:
    """The study's figures: what has run at this scale, and what is drawn in ``out``."""
    ran: dict[Any, str] = {}  # figures share their runs
    lines = [f"{study.folder}: {study.title}"]
    for figure in study.figures.values():
        source = figure.source
        if source not in ran:
            ran[source] = source.state(study.folder, scale, ranks)
        drawn = _drawn(out / f"{study.full_name(figure)}{SUFFIX}")
        lines += [f"  {figure.name:<12} {figure.title}", f"{'':15}{drawn}{ran[source]}"]
    return "\n".join(lines)


def _drawn(claims: Path) -> str:
    if not claims.is_file():
        return ""
    try:
        return f"drawn, {counts(read(claims))}; "
    except InputError:
        return "drawn by an older version, draw it again; "
