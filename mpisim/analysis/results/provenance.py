"""Where a figure on record comes from: settings, runs, seconds, machines, commits."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

from mpisim.analysis.settings import Settings, settings
from mpisim.analysis.study.figure import Figure, Study
from mpisim.analysis.study.logs import swept_logs
from mpisim.analysis.study.source import Measurement
from mpisim.core.imports import PACKAGE
from mpisim.core.numerics import processor
from mpisim.runs.host import commit, is_committed, provenance

DIGITS = 12  # of a commit


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


def provenance_of(study: Study, figure: Figure, scale: str, seconds: float) -> Provenance:
    """The provenance of a figure whose runs are complete.

    seconds : that a measurement has taken; those of runs are in their logs
    """
    measured = isinstance(figure.source, Measurement)  # in files of its own, which are no logs
    folders = [] if measured else figure.source.folders(study.folder)
    swept = [swept_logs(folder) for folder in folders]
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
    return Provenance(
        study.folder.resolve().name,
        study.title,
        figure.name,
        figure.title,
        scale,
        dict(runs),
        round(seconds, 1),
        varied,
        _unique(machine(attributes) for attributes in executed),
        _unique(commit_text(attributes) for attributes in executed),
        commit_text(drawn_by),
    )


def machine(attributes: dict[str, Any]) -> str:
    cores = int(attributes.get("cores", 0))
    return f"{cores} core{'' if cores == 1 else 's'}, {attributes.get('cpu', 'unknown processor')}"


def commit_text(attributes: dict[str, Any]) -> str:
    if "git_commit" not in attributes:
        return "not known"
    changed = " with changes" if attributes.get("git_dirty") else ""
    return f"{attributes['git_commit'][:DIGITS]}{changed}"


def _unique(texts: Iterable[str]) -> list[str]:
    return sorted(set(texts))
