"""Puts a report together."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from mpisim.analysis import framing, labels, run_list
from mpisim.analysis.link_model import Links
from mpisim.analysis.oversubscription import note
from mpisim.analysis.report import html, tables
from mpisim.analysis.report.axes import described, x_axes, y_axes
from mpisim.analysis.report.curves import curves
from mpisim.analysis.run_groups import RunGroup, group_runs
from mpisim.analysis.targets import Target
from mpisim.core.errors import InputError
from mpisim.core.version import VERSION
from mpisim.runs.log.reader import Log

TEMPLATE = resources.files("mpisim.analysis.report") / "template"
SCRIPTS = ("chart.js", "page.js")


@dataclasses.dataclass(frozen=True)
class Section:
    """The runs on one problem, with a number of workers."""

    name: str
    groups: list[RunGroup]


def report(
    folder: Path,
    logs: Sequence[Log],
    *,
    networks: Sequence[Links],
    targets: Sequence[Target] = (),
    title: str = "",
    refused: Sequence[InputError] = (),
) -> str:
    """The page, in HTML: the same logs give the same bytes.

    networks : of the axes of modelled seconds
    targets : of the table of costs; powers of ten that a run reaches where none is given
    refused : why other logs of the folder could not be read
    """
    sections, x, y = sections_of(logs), x_axes(logs, networks), y_axes(logs)
    data = {
        "x": [described(axis, logs) for axis in x],
        "y": [described(axis, logs) for axis in y],
        "sections": [
            {"name": section.name, "curves": curves(section.groups, x, y)} for section in sections
        ],
    }
    name = title or folder.resolve().name
    return Template(_file("report.html")).substitute(
        title=escape(name),
        style=_file("report.css"),
        script="\n".join(map(_file, SCRIPTS)),
        data=_embedded(data),
        summary=html.paragraph(tables.summary(logs)) + html.paragraph(note(logs)),
        refused="".join(html.paragraph(f"Not read: {error}") for error in refused),
        settings=tables.what_was_run(logs),
        sections="\n".join(_section(section, targets) for section in sections),
        runs=html.table(*run_list.run_list(folder, logs), sortable=True),
        provenance=tables.provenance(logs),
        version=VERSION,
    )


def sections_of(logs: Sequence[Log]) -> list[Section]:
    """A section for each problem with its data and number of workers."""
    found: dict[str, list[Log]] = {}
    for log in logs:
        problem = labels.of_log(log.attrs).problem(log.config["problem"])
        workers = f"{log.n} worker{'s' if log.n > 1 else ''}"
        found.setdefault(f"{problem}, {workers}", []).append(log)
    return [Section(name, group_runs(own, by_ranks=True)) for name, own in sorted(found.items())]


def _section(section: Section, targets: Sequence[Target]) -> str:
    return (
        '<section class="problem">'
        + html.heading("Costs of targets")
        + html.paragraph(
            "Payload bits sent by a worker, and seconds, in the first logged row that meets the"
            " target: mean ± sample standard deviation over the seeds."
        )
        + tables.costs(section.groups, targets)
        + html.paragraph(framing.note(section.groups, how="an axis of the curves includes it"))
        + html.heading("Seconds of a round by phase")
        + html.paragraph("On the slowest path; a mean over the rounds and the seeds.")
        + tables.breakdown(section.groups)
        + "</section>"
    )


def _embedded(data: object) -> str:
    """JSON that no text in it can end."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _file(name: str) -> str:
    return (TEMPLATE / name).read_text(encoding="utf-8")
