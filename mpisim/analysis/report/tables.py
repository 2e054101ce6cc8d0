"""The tables of a report: settings, costs of targets, seconds by phase, provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape

import numpy as np

from mpisim.analysis.breakdown import COLOURS, UNITS, per_round, unit_of
from mpisim.analysis.cost_table import costs_of, shown
from mpisim.analysis.report import html
from mpisim.analysis.results.provenance import commit_text, machine, seconds_of, settings, several
from mpisim.analysis.run_groups import RunGroup
from mpisim.analysis.targets import Target, name_of
from mpisim.comm.clock import PHASES
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log
from mpisim.runs.progress import duration

MOST_TARGETS = 6
LISTED = 6  # values of an attribute that are told one by one
VERSIONS = ("python", "numpy", "scipy", "numba", "h5py", "mpi4py")


def summary(logs: Sequence[Log]) -> str:
    """How many runs there are, and how they ended."""
    ended = Counter(str(log.attrs.get("status", "unknown")) for log in logs)
    counts = ", ".join(f"{count} {status}" for status, count in ended.most_common())
    seconds = sum(map(seconds_of, logs))
    took = f" They took {duration(seconds)}, added up." if seconds else ""
    return f"{len(logs)} run{'s' * (len(logs) > 1)}: {counts}.{took}"


def what_was_run(logs: Sequence[Log]) -> str:
    """Settings that vary, and those that all runs share."""
    found = settings(log.config for log in logs)
    varied = [(name, several(values)) for name, values in found.varied.items()]
    fixed = [(name, several([value])) for name, value in found.fixed.items()]
    varies = "<h3>Varied</h3>" + html.pairs(varied) if varied else ""
    return varies + "<h3>The same in all runs that have it</h3>" + html.pairs(fixed)


def costs(groups: Sequence[RunGroup], targets: Sequence[Target]) -> str:
    """What each group spends until the targets; by default powers of ten that a run reaches."""
    chosen = list(targets) or decades([log for group in groups for log in group.logs])
    able = [group for group in groups if _has_rows(group, chosen)]
    found = costs_of(able, chosen)
    return html.table(*shown(found), sortable=True) if found else html.paragraph("There is none.")


def decades(logs: Sequence[Log], y: str = "grad_norm_sq") -> list[Target]:
    """At most `MOST_TARGETS` powers of ten between the start and the best value of the runs."""
    columns = [log.columns[y] for log in logs if log.rows and y in log.columns]
    values = [own[np.isfinite(own) & (own > 0)] for own in columns]
    values = [own for own in values if own.size]
    if not values:
        return []
    first = int(np.ceil(np.log10(max(own[0] for own in values)))) - 1
    last = int(np.ceil(np.log10(min(own.min() for own in values))))
    powers = list(range(first, last - 1, -1))
    places = np.unique(np.linspace(0, len(powers) - 1, min(len(powers), MOST_TARGETS)).round())
    return [Target(y, float(f"1e{powers[int(place)]}")) for place in places]


def breakdown(groups: Sequence[RunGroup]) -> str:
    """A bar for each group: the mean seconds of a round by phase, over its seeds."""
    found = [(group.label or name_of(group.logs[0]), _phases(group)) for group in groups]
    bars = [(label, seconds) for label, seconds in found if seconds is not None]
    if not bars:
        return html.paragraph("No run has a round.")
    longest = max(float(seconds.sum()) for _, seconds in bars)
    legend = "".join(
        f'<span><i style="background:{COLOURS[phase]}"></i>{phase}</span>' for phase in PHASES
    )
    lines = [_bar(label, seconds, longest) for label, seconds in bars]
    return f'<div class="phases">{legend}</div>' + "\n".join(lines)


def provenance(logs: Sequence[Log]) -> str:
    """What executed the runs: code, machine, libraries, commands."""
    of: dict[str, Callable[[Log], str]] = {
        "mpisim": lambda log: str(log.attrs.get("package_version", "")),
        "commit": lambda log: commit_text(log.attrs),
        "source": lambda log: str(log.attrs.get("source", "")),
        "machine": lambda log: machine(log.attrs),
        "ranks": lambda log: str(log.attrs.get("ranks", "")),
        "MPI": lambda log: str(log.attrs.get("mpi_library", "")),
        "network": lambda log: str(log.attrs.get("network", "")),
        "libraries": lambda log: ", ".join(
            f"{name} {log.attrs[name]}" for name in VERSIONS if name in log.attrs
        ),
        "data": lambda log: str(log.attrs.get("problem", "")),
        "command": lambda log: str(log.attrs.get("command", "")),
    }
    rows = [(name, _listed(text(log) for log in logs)) for name, text in of.items()]
    times = [str(log.attrs.get(name) or "") for log in logs for name in ("start", "end")]
    times = sorted(filter(None, times))
    span = [("time", f"{times[0]} to {times[-1]}")] if times else []
    return html.pairs(rows + span)


def _has_rows(group: RunGroup, targets: Sequence[Target]) -> bool:
    needed = {"round", "bits_up", *(target.y for target in targets)}
    try:
        return all(log.column(name).size for log in group.logs for name in (*needed, "seconds"))
    except InputError:  # a log of other columns
        return False


def _phases(group: RunGroup) -> np.ndarray | None:
    try:
        return np.mean([per_round(log) for log in group.logs], axis=0)
    except InputError:
        return None


def _bar(label: str, seconds: np.ndarray, longest: float) -> str:
    unit = unit_of(longest)
    parts = "".join(
        f'<i style="background:{COLOURS[phase]};width:{100 * own / longest:.3f}%"'
        f' title="{phase}: {own / UNITS[unit]:.3g} {unit}"></i>'
        for phase, own in zip(PHASES, seconds, strict=True)
        if own > 0
    )
    total = f"{seconds.sum() / UNITS[unit]:.3g} {unit}"
    return f'<div class="bar"><span>{escape(label)}</span><div>{parts}</div><b>{total}</b></div>'


def _listed(texts: Iterable[str]) -> str:
    found = sorted(set(filter(None, texts)))
    more = f"; and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return "; ".join(found[:LISTED]) + more
