"""The page of `mpisim plot -o FILE.html`: curves, tables and provenance of runs in one file."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.analysis import costs, log_files
from mpisim.analysis.costs import Target
from mpisim.analysis.curves import about_framing, about_seconds, begun
from mpisim.analysis.formatting import TABLES, rendered
from mpisim.analysis.labels import settings, several
from mpisim.analysis.log_files import Logs, PathLike
from mpisim.analysis.plot import COLOURS, UNITS, per_round, unit_of
from mpisim.analysis.report_data import choices, curves, described, with_columns, x_axes, y_axes
from mpisim.analysis.results import commit_text, machine
from mpisim.analysis.run_groups import RunGroup, group_runs, workers_text
from mpisim.analysis.show import run_list
from mpisim.comm import links
from mpisim.comm.clock import PHASES
from mpisim.comm.fleet import built_fleets
from mpisim.core import VERSION
from mpisim.core.errors import InputError
from mpisim.core.files import write_file
from mpisim.runs import labels
from mpisim.runs.log.reader import Log
from mpisim.runs.progress import duration

NETWORKS = ("10mbit", "100mbit", "1gbit")
MOST_TARGETS = 6
SMALLEST = np.finfo(float).eps
LISTED = 6  # values of an attribute that are named one by one
VERSIONS = ("python", "numpy", "scipy", "numba", "h5py", "mpi4py")


def report(
    paths: Logs,
    output: PathLike,
    networks: Sequence[str] = NETWORKS,
    targets: Sequence[str] = (),
    title: str = "",
    where: str | Sequence[str] = (),
    best: bool | str | None = None,
    fleets: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] = (),
) -> Path:
    """Write the page of ``mpisim plot -o FILE.html``, the same for the same logs; returns its path.

    paths : as for `mpisim.load`, or the runs that it has read; a folder with those below it
    networks, targets : such as "100mbit,1ms" and "loss<=0.1"; of the axes of modelled seconds, and
        of the table of costs, with powers of ten that a run reaches where none is given
    where, best : which runs, as in `mpisim.analysis.log_files.selected`
    fleets : as for `mpisim.fleet`; the reader chooses among them
    """
    from markupsafe import Markup

    on, wanted = list(map(links.parse, networks)), list(map(costs.parse, targets))
    of_clients = built_fleets(fleets)
    folder, logs, refused = _logs_of(paths)
    logs = log_files.selected(logs, where, best)
    sections, x, y = sections_of(logs), x_axes(logs, on), y_axes(logs)
    data = {n: [described(axis, logs) for axis in axes] for n, axes in (("x", x), ("y", y))}
    data["sections"] = []
    tables = []
    for name, groups in sections.items():
        targets_here = wanted or decades([log for group in groups for log in group.logs])
        fleet = choices(groups, of_clients, targets_here)
        drawn = [dataclasses.replace(group, logs=begun(group.logs)) for group in groups]
        data["sections"].append({"name": name, "curves": curves(drawn, x, y), "fleets": fleet})
        spent = costs.costs_of(with_columns(groups, targets_here), targets_here)
        framing = about_framing(groups, how="an axis of the curves includes it")
        tables.append({"costs": costs.shown(spent), "remark": framing, "bars": _bars(drawn)})
    embedded = json.dumps(data, separators=(",", ":"), allow_nan=False)
    text = rendered(
        "report.html",
        several=several,
        # black is the text's colour, so that it is not lost on a dark page
        ink=lambda colour: colour.replace("#000000", "currentColor"),
        title=title or (folder.resolve().name if folder else "mpisim"),
        data=Markup(embedded.replace("<", "\\u003c")),  # no text in it can end it
        summary=summary(logs),
        remark=about_seconds(logs),
        refused=refused,
        settings=settings(log.config for log in logs),
        sections=tables,
        phases=COLOURS,
        runs=run_list(folder, logs),
        provenance=provenance(logs),
        version=VERSION,
    )
    write_file(Path(output), text.encode(), InputError)
    return Path(output)


def _logs_of(paths: Logs) -> tuple[Path | None, Sequence[Log], list[InputError]]:
    """The folder, if that is all that is named; the logs; and why others cannot be read."""
    named = [paths] if isinstance(paths, PathLike | Log) else list(paths)
    places = [Path(one) for one in named if not isinstance(one, Log)]
    if len(places) < len(named):
        return None, log_files.load(named), []
    folder = places[0] if len(places) == 1 and places[0].is_dir() else None
    files = log_files.below(folder) if folder else log_files.find(places)
    return folder, *log_files.readable(log_files.by_settings(files))


def sections_of(logs: Sequence[Log]) -> dict[str, list[RunGroup]]:
    """{problem with its data and number of workers: its runs}."""

    def name_of(log: Log) -> str:
        problem = labels.of_log(log.attrs).problem(log.config["problem"])
        return f"{problem}, {workers_text(log)}"

    names = labels.by_key(logs, name_of)
    return {name: group_runs(here, by_ranks=True) for name, here in sorted(names.items())}


def summary(logs: Sequence[Log]) -> str:
    """How many runs there are, and how they ended."""
    ended = Counter(str(log.attrs.get("status", "unknown")) for log in logs)
    counts = ", ".join(f"{count} {status}" for status, count in ended.most_common())
    seconds = sum(log.duration for log in logs)
    took = f" They took {duration(seconds)}, added up." if seconds else ""
    return f"{len(logs)} run{'s' * (len(logs) > 1)}: {counts}.{took}"


def decades(logs: Sequence[Log]) -> list[Target]:
    """At most `MOST_TARGETS` powers of ten between the start and the best |grad f|^2 of the runs.

    None is below `SMALLEST` times the start: there f - f* is a rounding error of f.
    """
    y = "grad_norm_sq"
    columns = [log.columns[y] for log in logs if log.rows and y in log.columns]
    values = [column[np.isfinite(column) & (column > 0)] for column in columns]
    values = [column for column in values if column.size]
    if not values:
        return []
    start, best = max(column[0] for column in values), min(column.min() for column in values)
    first = int(np.ceil(np.log10(start))) - 1
    last = int(np.ceil(np.log10(max(best, SMALLEST * start))))
    powers = list(range(first, last - 1, -1))
    places = np.unique(np.linspace(0, len(powers) - 1, min(len(powers), MOST_TARGETS)).round())
    return [Target(y, float(f"1e{powers[int(place)]}")) for place in places]


def provenance(logs: Sequence[Log]) -> list[tuple[str, str]]:
    """What executed the runs: code, machine, libraries, commands, and when."""
    made = {"commit": commit_text, "machine": machine, "libraries": _libraries}
    rows = []
    for name, attribute in TABLES["provenance"].items():
        text = made.get(name, lambda attributes: str(attributes.get(attribute, "")))  # noqa: B023
        rows.append((name, _listed(text(log.attrs) for log in logs)))
    times = [str(log.attrs.get(name) or "") for log in logs for name in ("start", "end")]
    times = sorted(filter(None, times))
    return [*rows, ("time", f"{times[0]} to {times[-1]}" if times else "")]


def _bars(groups: Sequence[RunGroup]) -> list[dict[str, Any]]:
    """For each group the mean seconds of a round by phase, over its seeds; as shares and texts."""
    rounds = {}
    for group in groups:
        with suppress(InputError):  # without a round
            rounds[group.name] = np.mean([per_round(log) for log in group.logs], axis=0)
    longest = max((float(seconds.sum()) for seconds in rounds.values()), default=0.0)
    unit = unit_of(longest)

    def text(seconds: float) -> str:
        return f"{seconds / UNITS[unit]:.3g} {unit}"

    return [
        {
            "label": label,
            "total": text(seconds.sum()),
            "parts": [
                (phase, f"{100 * spent / longest:.3f}", text(spent))
                for phase, spent in zip(PHASES, seconds, strict=True)
                if spent > 0
            ],
        }
        for label, seconds in rounds.items()
    ]


def _libraries(attributes: dict[str, Any]) -> str:
    return ", ".join(f"{name} {attributes[name]}" for name in VERSIONS if name in attributes)


def _listed(texts: Iterable[str]) -> str:
    values = sorted(set(filter(None, texts)))
    more = f"; and {len(values) - LISTED} more" if len(values) > LISTED else ""
    return "; ".join(values[:LISTED]) + more
