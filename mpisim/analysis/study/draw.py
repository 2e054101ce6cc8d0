"""Drawing the figures of a study, and telling how they stand."""

from __future__ import annotations

from pathlib import Path

from mpisim.analysis.claims import SUFFIX, read, table, write
from mpisim.analysis.plot import SUFFIXES, save
from mpisim.analysis.study.spec import Figure, Study


def draw(study: Study, figure: Figure, logs: Path | None, out: Path) -> str:
    """Write OUT/STUDY-FIGURE.png, .pdf and .claims.json; the claims as a table.

    ``logs`` is the folder of the numbers, the figure's own if None. `InputError` where there are
    none.
    """
    name = study.full_name(figure)
    found, left = figure.source.read(logs or figure.source.folder(study, figure))
    drawn = figure.draw(found)
    pictures = [out / f"{name}{suffix}" for suffix in SUFFIXES]
    for picture in pictures:
        save(drawn, picture)
    claims = list(figure.claims(found))
    path = write(out / f"{name}{SUFFIX}", claims)
    files = ", ".join(map(str, [*pictures, path]))
    return "\n".join([*left, f"{table(name, claims)}\n\n{files}"])


def overview(study: Study, scale: str, out: Path, ranks: int) -> str:
    """The study's figures, what has run of each, and what is drawn in ``out``."""
    ran: dict[int, str] = {}  # figures share what is run
    lines = [f"{study.folder}: {study.title}"]
    for figure in study.figures.values():
        source = figure.source
        if id(source) not in ran:
            ran[id(source)] = source.state(study, figure, scale, ranks)
        drawn = _drawn(study.full_name(figure), out)
        lines += [f"  {figure.name:<12} {figure.title}", f"{'':15}{drawn}{ran[id(source)]}"]
    return "\n".join(lines)


def _drawn(name: str, out: Path) -> str:
    """``drawn, 3 of 4 claims hold; ``, or nothing."""
    claims = out / f"{name}{SUFFIX}"
    if not claims.is_file() or not (out / f"{name}{SUFFIXES[0]}").is_file():
        return ""
    found = read(claims)
    return f"drawn, {sum(claim.holds for claim in found)} of {len(found)} claims hold; "
