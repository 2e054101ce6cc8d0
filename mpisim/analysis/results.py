"""The files of a figure on record, three for each scale: picture, claims, and where it is from."""

from __future__ import annotations

import dataclasses
import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mpisim.analysis import claims
from mpisim.analysis.claims import Claim
from mpisim.analysis.labels import Settings, settings
from mpisim.analysis.study.figure import Figure, Measurement, Study
from mpisim.analysis.study.tuning import swept_logs
from mpisim.core.errors import InputError
from mpisim.core.files import read_json, write_file, write_json
from mpisim.core.imports import PACKAGE
from mpisim.core.numerics import processor
from mpisim.runs.host import commit, is_committed, provenance
from mpisim.runs.identity import of_log
from mpisim.runs.log.reader import Log

FOLDER = "results"  # in the folder of a study
PICTURE, SUFFIX = ".png", ".provenance.json"
LIMIT = 200_000  # bytes
RESOLUTIONS = (200, 160, 130, 110, 100)  # dots an inch; below the last, small text is unreadable
COLOURS = 256  # of a palette
DIGITS = 12  # of a commit


class Result(NamedTuple):
    """A figure at one scale, on record."""

    provenance: Provenance
    claims: Sequence[Claim]

    @property
    def picture(self) -> str:
        """The name of the picture's file."""
        return _stem(self.provenance) + PICTURE


def write(folder: Path, result: Result, picture: bytes) -> list[Path]:
    """Write the three files; returns them. `OutputError` where that fails."""
    stem = _stem(result.provenance)
    paths = [folder / f"{stem}{suffix}" for suffix in (PICTURE, claims.SUFFIX, SUFFIX)]
    write_file(paths[0], picture)
    claims.write(paths[1], result.claims)
    write_json(paths[2], dataclasses.asdict(result.provenance))
    return paths


def read(folder: Path) -> list[Result]:
    """The figures on record in a folder: fig2 before fig10, the scale ``quick`` first.

    `InputError` for files that `write` did not write.
    """
    return sorted(map(_read, folder.glob(f"*{SUFFIX}")), key=_place)


def of_study(folder: Path) -> list[Result]:
    """The figures on record of the study in ``folder``; `InputError` without any."""
    results = read(folder / FOLDER)
    if not results:
        how = f"`mpisim study {folder} FIGURE --record` draws a figure and puts it there"
        raise InputError(f"{folder / FOLDER}: nothing is on record; {how}")
    return results


def by_scale(results: Sequence[Result]) -> dict[str, dict[str, Sequence[Claim]]]:
    """{``STUDY, SCALE``: {figure: claims}}."""
    scales: dict[str, dict[str, Sequence[Claim]]] = {}
    for result in sorted(results, key=lambda one: scale_order(one.provenance.scale)):
        one = result.provenance
        scales.setdefault(f"{one.study}, {one.scale}", {})[one.figure] = result.claims
    return scales


def scale_order(scale: str) -> tuple[bool, str]:
    """For sorting: ``quick`` first."""
    return scale != "quick", scale


def _read(path: Path) -> Result:
    other = "not the provenance of a figure; record it again"
    provenance = read_json(
        path, lambda keys: Provenance(**keys | {"settings": Settings(**keys["settings"])}), other
    )
    stem = path.name.removesuffix(SUFFIX)
    return Result(provenance, claims.read(path.with_name(f"{stem}{claims.SUFFIX}")))


def _stem(provenance: Provenance) -> str:
    return f"{provenance.figure}.{provenance.scale}"


def _place(result: Result) -> tuple[list[str | int], tuple[bool, str]]:
    words = re.split(r"(\d+)", result.provenance.figure)
    numbered = [int(word) if word.isdigit() else word for word in words]
    return numbered, scale_order(result.provenance.scale)


def small_png(figure: Any, limit: int = LIMIT) -> bytes:
    """A matplotlib figure as PNG with a palette, at the highest resolution that fits the limit.

    The same figure gives the same bytes. `InputError` where no resolution fits.
    """
    from PIL import Image  # matplotlib writes PNG with it, too

    for dpi in RESOLUTIONS:
        drawn, content = io.BytesIO(), io.BytesIO()
        figure.savefig(drawn, format="png", dpi=dpi)
        with Image.open(drawn) as picture:
            palette = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        palette.save(content, format="png", optimize=True)
        if (length := len(content.getbuffer())) <= limit:
            return content.getvalue()
    size = f"{length:,} bytes at {dpi} dots an inch"
    how = "to go on record: draw fewer or smaller panels"
    raise InputError(f"the picture has {size}; it must have at most {limit:,} {how}")


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Of one figure at one scale.

    Attributes
    ----------
    study, study_title, figure, title, scale : what was drawn
    runs : {status: number of runs}; empty for a measurement
    seconds : the wall clocks of the runs, or of the measurement, added up
    settings : what varies over the runs, and what is the same in all of them
    machines : cores and processor of each machine class, without names of hosts
    run_commits : of the package that ran
    commit : of the package and the study that drew the figure
    plugins : of the runs, with the digests of their modules
    """

    study: str
    study_title: str
    figure: str
    title: str
    scale: str
    runs: dict[str, int]
    seconds: float
    settings: Settings
    machines: list[str]
    run_commits: list[str]
    commit: str
    plugins: list[str] = dataclasses.field(default_factory=list)


def provenance_of(study: Study, figure: Figure, scale: str, seconds: float) -> Provenance:
    """The provenance of a figure whose runs are complete.

    seconds : that a measurement has taken; those of runs are in their logs
    """
    swept = [swept_logs(grid.folder(study.folder)) for grid in figure.source.parts()]
    logs = [log for there, _ in swept for log in there]
    missing = [path for _, gone in swept for path in gone]
    here = provenance() | processor.facts()
    package = commit(PACKAGE)
    changed = package.get("git_dirty") or not is_committed(study.folder)
    drawn_by = package | {"git_dirty": changed}
    runs = Counter(str(log.attrs.get("status")) for log in logs)
    if missing:
        runs["not run"] = len(missing)
    if logs:
        seconds, varied = sum(log.duration for log in logs), settings(log.config for log in logs)
    else:
        assert isinstance(figure.source, Measurement)
        varied = Settings({}, {"size": figure.source.scales[scale]})
    executed = [log.attrs for log in logs] or [here | drawn_by]
    names = study.folder.resolve().name, study.title, figure.name, figure.title, scale
    ran = dict(runs), round(seconds, 1), varied
    machines, commits = (sorted({*map(text, executed)}) for text in (machine, commit_text))
    plugins = sorted({text for log in logs for text in _plugins(log)})
    return Provenance(*names, *ran, machines, commits, commit_text(drawn_by), plugins)


def _plugins(log: Log) -> list[str]:
    """The plugins of a log, files by their names, with the digests of what was executed."""
    code = of_log(log.attrs)
    names = [Path(name).name for name in log.config.get("plugin", [])]
    digests = [code.get(f"module {name.removesuffix('.py')}", "not known") for name in names]
    return [f"{name} ({digest})" for name, digest in zip(names, digests, strict=True)]


def machine(attributes: dict[str, Any]) -> str:
    cores = int(attributes.get("cores", 0))
    return f"{cores} core{'' if cores == 1 else 's'}, {attributes.get('cpu', 'unknown processor')}"


def commit_text(attributes: dict[str, Any]) -> str:
    if "git_commit" not in attributes:
        return "not known"
    changed = " with changes" if attributes.get("git_dirty") else ""
    return f"{attributes['git_commit'][:DIGITS]}{changed}"
