"""Turns logs into curves: the values on an axis, and mean and band over seeds.

Also the lines below figures and tables about what their numbers leave out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mpisim.analysis.formatting import TABLES
from mpisim.analysis.run_groups import RunGroup, one_setting
from mpisim.core.errors import InputError
from mpisim.core.terminal import report
from mpisim.runs.log.reader import Log

# Labels of the axes of columns that are summed over workers, and of others; what framing belongs to
# columns of payload bits.
SUMMED, LABELS, FRAMING = (TABLES[name] for name in ("summed", "labels", "framing"))
GRID_POINTS = 400
# With more ranks than cores, ranks take turns; runs side by side share memory and caches; after a
# resume on other ranks or hosts, or another network, the seconds are those of neither.
WHY = "more ranks than cores, runs side by side, or a resume elsewhere"
ABOVE = 0.05  # of the payload: framing that must not be left out silently


def grows(name: str) -> bool:
    """Whether a column counts what a run has spent, and so never falls."""
    spent = ("round", "bits_up_max", "seconds", "simulated_seconds", *SUMMED)
    return name in spent or name.startswith("time_")


@dataclasses.dataclass(frozen=True)
class Axis:
    """A column of the logs on an axis, logarithmic or linear.

    ``per_worker`` divides columns that are summed over workers by the number of workers.
    ``framing`` adds framing to a column in `FRAMING`; no other column changes.
    """

    name: str
    log: bool
    per_worker: bool = True
    framing: bool = False

    @property
    def timed(self) -> bool:
        """Whether the axis shows seconds, which depend on ranks and cores."""
        return self.name == "seconds" or self.name.startswith("time_")

    def values(self, log: Log) -> np.ndarray:
        """The column, shape (rows,); `InputError` lists the columns where it is missing."""
        values = self.total(log)
        return values / log.n if self.per_worker and self.name in SUMMED else values

    def total(self, log: Log) -> np.ndarray:
        """The column, with framing where it belongs to the axis; not divided by anything."""
        values = log.column(self.name)
        for name in FRAMING.get(self.name, ()) if self.framing else ():
            values = values + log.column(name)
        return values

    def label(self, log: Log) -> str:
        """The text beside the axis, with units."""
        if self.name in SUMMED:
            also = ", with framing" * (self.framing and self.name in FRAMING)
            workers = " per worker" if self.per_worker else ", all workers"
            return f"{SUMMED[self.name]}{workers}{also}"
        if self.name in LABELS:
            return LABELS[self.name]
        units = log.units.get(self.name, "")
        name = self.name.replace("time_", "time to ").replace("_", " ")
        return f"{name} ({units})" if units not in ("", "1") else name


SENT, ROUNDS = Axis("bits_up", log=True), Axis("round", log=False)
GRADIENT = Axis("grad_norm_sq", log=True)  # |grad f|^2
UNIFORM = Axis("mean_grad_norm_sq", log=True)  # its expectation at the iterate that theorems return


@dataclasses.dataclass(frozen=True)
class Named(Axis):
    """A column, or a function of it, with a label of its own."""

    text: str = ""
    of: Callable[[np.ndarray], np.ndarray] = np.asarray

    def values(self, log: Log) -> np.ndarray:
        return self.of(self.total(log))

    def label(self, log: Log) -> str:
        return self.text


class Epochs(Named):
    """Passes over the data: gradients of single samples over the samples of all workers."""

    def values(self, log: Log) -> np.ndarray:
        return log.column("oracle_calls") / log.workers["rows"].sum()


EPOCHS = Epochs("epochs", log=False, text="epochs")
# Of networks, as papers draw them: the norm itself.
LOSS = Named("loss", log=False, text="training loss")
NORM = Named("grad_norm_sq", log=True, text="training gradient norm", of=np.sqrt)


class Curve(NamedTuple):
    """Arrays of shape (points,); ``low`` and ``high`` bound the band, None for a single run."""

    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def begun(logs: Sequence[Log]) -> list[Log]:
    """The logs with a round to draw; a line on standard error names each other one.

    All of them where none has a round.
    """
    kept = [log for log in logs if log.rows > 1]
    for log in logs if kept else ():
        if log.rows < 2:
            report(f"mpisim: passed over: {log.path}: has no round to draw")
    return kept or list(logs)


def points(log: Log, x: Axis, y: Axis) -> tuple[np.ndarray, np.ndarray, float]:
    """The points of a log that the axes can show, and the y that holds left of the first one.

    Points are finite, and positive on a logarithmic axis. The y is that of the row before the first
    point, where x is 0, say, which a logarithmic axis cannot show; else that of the point itself.
    Raises `InputError` if there is no point.
    """
    xs, ys = x.values(log), y.values(log)
    shown = _can_show(y, ys)
    good = _can_show(x, xs) & shown
    if not good.any():
        flags = " and ".join(f"--linear-{n}" for n, a in (("x", x), ("y", y)) if a.log)
        hint = f"; {flags} for values that are not positive" if flags and log.rows else ""
        raise InputError(f"{log.path}: nothing to draw of {y.name} against {x.name}{hint}")
    first = int(np.argmax(good))
    before = np.flatnonzero(shown[:first])
    return xs[good], ys[good], float(ys[before[-1] if before.size else first])


def _can_show(axis: Axis, values: np.ndarray) -> np.ndarray:
    finite = np.isfinite(values)
    return finite & (values > 0) if axis.log else finite


def crossing(log: Log, x: Axis, y: Axis, level: float) -> float:
    """x where y first falls to ``level``, between rows by log y; infinity where it never does."""
    values = np.log(np.minimum.accumulate(y.values(log)))
    below = np.flatnonzero(values <= np.log(level))
    if not below.size:
        return float("inf")
    k, xs = int(below[0]), x.values(log)
    if k == 0:
        return float(xs[0])
    share = (values[k - 1] - np.log(level)) / (values[k - 1] - values[k])
    return float(xs[k - 1] + share * (xs[k] - xs[k - 1]))


def over_seeds(logs: Sequence[Log], x: Axis, y: Axis) -> Curve:
    """One curve for runs that differ in the seed: their mean and one standard deviation.

    Each seed counts once, and runs that differ in another key are refused: see `one_setting`.

    On a logarithmic y axis both are taken of log y, so the mean is the geometric one. The runs are
    interpolated to a common grid, linearly in the scales of the axes. It begins with the run that
    begins first, and ends where all runs still are. Left of its own first row, a run is where it
    starts: it has nothing better yet.
    """
    runs = [points(log, x, y) for log in one_setting(logs, x.timed or y.timed)]
    if len(runs) == 1:
        return Curve(*runs[0][:2])
    to_x, to_y = (np.log if axis.log else np.asarray for axis in (x, y))
    from_y = np.exp if y.log else np.asarray
    grid = common_grid([xs for xs, *_ in runs], x)
    at = to_x(grid)
    rows = [
        to_y(ys)  # of equal x, which may stand still, interpolation would drop rows
        if np.array_equal(xs, grid)
        else np.interp(at, to_x(xs), to_y(ys), left=float(to_y(start)))
        for xs, ys, start in runs
    ]
    mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
    return Curve(grid, from_y(mean), from_y(mean - spread), from_y(mean + spread))


def common_grid(xs: list[np.ndarray], axis: Axis) -> np.ndarray:
    """The x of all runs if these are equal; else an even grid.

    The grid begins where the first run begins, and ends where the first run ends. `InputError` for
    an x that falls, of which a run may have several y.
    """
    if all(np.array_equal(x, xs[0]) for x in xs[1:]):
        return xs[0]
    if any((np.diff(x) < 0).any() for x in xs):
        allowed = "draw one seed, or over a column that never falls, such as round"
        raise InputError(f"--x: {axis.name} falls, so runs have no mean over it; {allowed}")
    first, last = min(x[0] for x in xs), min(x[-1] for x in xs)
    if first >= last:
        return np.array([first])
    return (np.geomspace if axis.log else np.linspace)(first, last, GRID_POINTS)


def oversubscribed(logs: Iterable[Log]) -> bool:
    """Whether one of the runs says of itself what `WHY` says."""
    most = {"oversubscribed": 0, "side_by_side": 1, "ensemble": 1, "resumed_elsewhere": 0}
    return any(log.attrs.get(key, 0) > number for log in logs for key, number in most.items())


def about_seconds(logs: Sequence[Log]) -> str:
    """Which runs' seconds say little about methods; empty where all seconds count."""
    few = sum(oversubscribed([log]) for log in logs)
    which = "the runs" if few == len(logs) else f"{few} of {len(logs)} runs"
    return f"{which} had {WHY}: their seconds are not to be compared" if few else ""


def about_framing(
    groups: Sequence[RunGroup], axes: Sequence[Axis] = (SENT,), how: str = "--framing includes it"
) -> str:
    """Which group has most framing; empty where none is above `ABOVE` on an axis."""
    pairs = [(group, axis) for group in groups for axis in axes]
    shares = [(max(framing_share(log, x) for log in g.logs), g, x.name) for g, x in pairs]
    above = [one for one in shares if one[0] > ABOVE]
    if not above:
        return ""
    most, worst, name = max(above, key=lambda one: one[0])
    percent = f"{most:.{0 if most >= 0.1 else 1}%}"
    several = any(group is not worst for _, group, _ in above)
    who, adds = (f"({worst.name})", "adds up to") if several else (f"by {worst.name}", "adds")
    return f"framing {adds} {percent} to the {SUMMED[name]} {who}; {how}"


def remarks(logs: Sequence[Log], groups: Sequence[RunGroup], axes: Sequence[Axis]) -> list[str]:
    """The lines below what shows runs on these axes."""
    timed = any(axis.timed for axis in axes)
    return list(filter(None, [about_seconds(logs) * timed, about_framing(groups, axes)]))


def framing_share(log: Log, axis: Axis = SENT) -> float:
    """Framing over payload in the last row; 0 for other axes, and where a log lacks the columns."""
    names = FRAMING.get(axis.name, ())
    if not names or axis.framing or not all(map(log.has, (axis.name, *names))):
        return 0.0
    payload, *framing = (log.column(name)[-1] for name in (axis.name, *names))
    return float(sum(framing) / payload) if payload else 0.0
