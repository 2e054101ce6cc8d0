"""Draws logs: a curve for each group of runs, or a bar of the seconds of a round by phase."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.analysis import style
from mpisim.analysis.curves import FRAMING, Axis, Curve, about_seconds, begun, over_seeds, remarks
from mpisim.analysis.link_model import over_seconds
from mpisim.analysis.log_files import selected
from mpisim.analysis.run_groups import RunGroup, common_title, group_runs
from mpisim.comm.clock import PHASES
from mpisim.comm.links import parse
from mpisim.core.errors import InputError
from mpisim.core.files import write_file
from mpisim.core.schema import choose, require
from mpisim.core.terminal import report
from mpisim.runs.log.reader import Log

SUFFIXES = (".png", ".pdf")  # of the figures of studies
DPI = 200
LETTERS = 16  # of a footnote, in an inch
ALLOWED = (*SUFFIXES, ".svg")
Limits = tuple[float | None, float | None]
Names = Mapping[str, str] | Sequence[str] | None
Drawn = tuple[str, Curve, dict[str, Any]]  # name and look of a curve
MOST = 12  # curves that can be told apart
SMALLEST, LARGEST = 1.0, 100.0  # inches
COLOURS = dict(zip(PHASES, (*style.COLOURS, "#999999"), strict=True))
BAR = 0.45  # inches a bar
AROUND, LINE = 1.9, 0.2  # inches for title, legend and axis; for another line of the title
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
LEGEND = {"fontsize": 9, "handlelength": 1.0, "handletextpad": 0.5, "columnspacing": 1.4}
UNDATED: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}


def draw(
    logs: Sequence[Log],
    x: str = "bits_up",
    y: str = "grad_norm_sq",
    *,
    per_worker: bool = True,
    linear_x: bool | None = None,
    linear_y: bool = False,
    title: str | None = None,
    network: str | None = None,
    framing: bool = False,
    xlim: Limits | None = None,
    ylim: Limits | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    size: tuple[float, float] | None = None,
    ax: Any = None,
    labels: Names = None,
    colors: Names = None,
    where: str | Sequence[str] = (),
    best: bool | str = False,
) -> Any:
    """A matplotlib figure of column ``y`` of the logs against column ``x``.

    Logs whose experiments differ only in the seed make one curve: the mean of log y (of y with
    ``linear_y``) and a band of one standard deviation. Axes are logarithmic, except x = round and
    those that ``linear_x`` and ``linear_y`` name. With ``per_worker``, columns that are summed
    over workers are divided by their number. With a ``network`` such as "100mbit,1ms", x
    must be "seconds", and shows the seconds that the runs would take there by `link_model`. With
    ``framing``, bits sent and received have their framing; without it, a footnote says where it is
    large. ``xlim`` and ``ylim`` are (low, high), either of which may be None; ``size`` is (width,
    height) in inches, with all that is on the page. Raises `InputError` for logs that cannot be
    read or drawn.

    ax : axes to draw into, in their figure's own look; their limits, labels and title are set
        only where they are given here
    labels, colors : of the curves, in their order, or by their labels: ``{"MARINA": "ours"}``
    where, best : which runs, as in `mpisim.analysis.log_files.selected`
    """
    style.check_installed()
    log_x = not (x == "round" if linear_x is None else linear_x)
    axes = Axis(x, log_x, per_worker, framing), Axis(y, not linear_y, per_worker, framing)
    if framing and not {x, y} & FRAMING.keys():
        *others, last = FRAMING
        allowed = f"{', '.join(others)} or {last}"
        raise InputError(f"--framing: adds framing to bits; make --x or --y {allowed}")
    if network is not None:
        require(x == "seconds", "--x", x, "seconds, with --network")
        axes = over_seconds(parse(network), log_x), axes[1]
    check_size(size)
    limits, texts = {"x": xlim, "y": ylim}, {"xlabel": xlabel, "ylabel": ylabel, "title": title}
    frame = _frame(limits, texts, axes)
    timed = any(axis.timed for axis in axes)
    logs = begun(selected(logs, where, best, timed))
    groups = group_runs(logs, by_ranks=timed)
    curves = [over_seeds(group.logs, *axes) for group in groups]
    if len(groups) > MOST:
        report(f"mpisim: {len(groups)} curves: --best keeps the best steps, --where some runs")
    drawn = list(_drawn(groups, curves, labels, colors))
    log = groups[0].logs[0]
    frame = {"xlabel": axes[0].label(log), "ylabel": axes[1].label(log)} | frame
    if ax is not None:
        _fill(ax, drawn, axes, frame)
        if len(groups) > 1:
            style.legend(ax)
        return ax.figure
    with style.styled():
        figure, panel = style.new_figure(size)
        frame = {"title": style.with_formulas(common_title(groups))} | frame
        _fill(panel, drawn, axes, frame)
        style.place_legend(panel, may_grow=size is None)
    letters = int(LETTERS * figure.get_figwidth())
    notes = remarks(logs, groups, axes)
    style.remark(figure, "\n".join(textwrap.fill(text, letters) for text in notes))
    return figure


def _frame(
    limits: Mapping[str, Limits | None], texts: Mapping[str, str | None], axes: tuple[Axis, Axis]
) -> dict[str, Any]:
    """What is given of a panel's limits and texts, checked, as `Axes.set` takes it."""
    for (name, pair), axis in zip(limits.items(), axes, strict=True):
        given = [value for value in pair or () if value is not None]
        good = all(math.isfinite(value) and (value > 0 or not axis.log) for value in given)
        positive = f", both positive: the axis is logarithmic, unless --linear-{name}" * axis.log
        allowed = f"two numbers, the smaller one first, or auto for either{positive}"
        good = good and (len(given) < 2 or given[0] < given[1])
        require(good, f"--{name}lim", _listed(pair or ()), allowed)
    for name, text in texts.items():
        check_text(f"--{name}", text)
    frame = {f"{name}lim": pair for name, pair in limits.items()} | dict(texts)
    return {name: value for name, value in frame.items() if value is not None}


def _drawn(
    groups: list[RunGroup], curves: Sequence[Curve], labels: Names, colors: Names
) -> Iterator[Drawn]:
    """Each group's text in the legend, its curve, and how that is drawn."""
    colours, texts = _renamed(groups, colors, "colors"), _renamed(groups, labels, "labels")
    for i, (text, colour, curve) in enumerate(zip(texts, colours, curves, strict=True)):
        look = style.curve(*colour_and_dash(groups, i), i, len(groups))
        shown = groups[i].name if len(groups) > 1 else groups[i].label
        name = style.with_formulas(shown) if text is None else text
        yield name, curve, look if colour is None else look | {"color": colour}


def check_output(output: Path) -> None:
    """Raise `InputError` unless ``output`` ends like a figure."""
    if output.suffix.lower() not in ALLOWED:
        raise InputError(f"{output}: a figure's name must end in {' or '.join(ALLOWED)}")


def _fill(panel: Any, curves: Sequence[Drawn], axes: Sequence[Axis], frame: dict[str, Any]) -> None:
    """Draw the curves into a panel, with scales, labels and ticks."""
    for name, curve, look in curves:
        [line] = panel.plot(curve.x, curve.y, label=name, **look)
        if curve.low is not None and curve.high is not None:
            style.band(panel, line, curve.x, curve.low, curve.high)
    style.scale(panel, axes[0].log, axes[1].log, **frame)


def _renamed(groups: list[RunGroup], given: Names, what: str) -> list[str | None]:
    """The text or colour given for each curve, or None; `InputError` for another name."""
    names = [group.name for group in groups]
    if given is None:
        return [None] * len(names)
    if isinstance(given, Mapping):
        for name in given:
            choose(dict.fromkeys(names), name, what)
        return [given.get(name) for name in names]
    require(len(given) == len(names), what, list(given), f"{len(names)} values: {list(names)}")
    return list(given)


def colour_and_dash(groups: list[RunGroup], place: int) -> tuple[int, int]:
    """Numbers of colour and dash; where methods and variants cross, the colour is the variant."""
    methods = list(dict.fromkeys(group.method for group in groups))
    variants = list(dict.fromkeys(group.variant for group in groups))
    if len(groups) > max(len(methods), len(variants)):
        return variants.index(groups[place].variant), methods.index(groups[place].method)
    return place, place


def save(figure: Any, output: Path) -> None:
    """Write a figure; the same logs give the same bytes. `InputError` where that fails."""
    import matplotlib

    picture, kind = io.BytesIO(), output.suffix[1:].lower()
    metadata = UNDATED.get(kind, {})  # the file would hold the time of writing
    with matplotlib.rc_context(style.SAVED):
        figure.savefig(picture, format=kind, dpi=DPI, metadata=metadata)
    write_file(output, picture.getvalue(), InputError)


def check_size(size: tuple[float, float] | None) -> None:
    """Raise `InputError` unless a figure may have this size in inches."""
    if size is not None:
        allowed = f"a width and a height between {SMALLEST:g} and {LARGEST:g} inches"
        require(all(SMALLEST <= side <= LARGEST for side in size), "--size", _listed(size), allowed)


def check_text(where: str, text: str | None) -> None:
    """Raise `InputError` unless matplotlib can set the formulas of a text."""
    allowed = "text; formulas between dollar signs must be matplotlib's mathtext"
    require(text is None or style.with_formulas(text) == text, where, text, allowed)


def _listed(values: tuple[float | None, ...]) -> str:
    return " ".join("auto" if value is None else f"{value:g}" for value in values)


def draw_bars(
    logs: Sequence[Log], title: str | None = None, size: tuple[float, float] | None = None
) -> Any:
    """A matplotlib figure of the mean seconds of a round, by phase, of the runs.

    What is spent before round 0 is left out. Runs that differ only in the seed make one bar, their
    mean. ``size`` is (width, height) in inches. Raises `InputError` where no log has a round.
    """
    style.check_installed()
    check_size(size)
    check_text("--title", title)
    groups = group_runs(begun(logs), by_ranks=True)
    seconds = [np.mean([per_round(log) for log in group.logs], axis=0) for group in groups]
    title = style.with_formulas(common_title(groups)) if title is None else title
    height = AROUND + BAR * len(groups) + LINE * title.count("\n")
    with style.styled():
        figure, panel = style.new_figure(size or (style.WIDE, height))
        unit = unit_of(np.sum(seconds, axis=1).max())
        left, places = np.zeros(len(groups)), range(len(groups))
        for phase, widths in zip(PHASES, np.transpose(seconds) / UNITS[unit], strict=True):
            bars = panel.barh(places, widths, 0.7, left=left, color=COLOURS[phase], label=phase)
            left += widths
        panel.bar_label(bars, [f"{total:.3g} {unit}" for total in left], padding=4, fontsize=9)
        labels = [style.with_formulas(group.name) for group in groups]
        panel.set_yticks(places, labels)
        panel.invert_yaxis()  # the first log on top
        panel.grid(visible=False, axis="y")
        panel.set_axisbelow(True)
        panel.margins(x=0.12)
        panel.set(xlabel=f"{unit} a round, on the slowest path", title=title)
        figure.legend(loc="outside upper center", ncols=len(PHASES), **LEGEND)
        style.remark(figure, about_seconds(logs))
    return figure


def per_round(log: Log) -> np.ndarray:
    """Mean seconds of a round in each of `PHASES`, from the first row of a log to its last.

    The mean, not the median: methods whose rounds are not alike spend both kinds of them, and means
    of phases add up to the mean of the round.
    """
    rounds = log.column("round")
    if log.rows < 2 or rounds[-1] <= rounds[0]:
        raise InputError(f"{log.path}: no round to draw; the log has {log.rows} rows")
    spent = np.array([np.ptp(log.column(f"time_{phase}")[[0, -1]]) for phase in PHASES])
    return spent / (rounds[-1] - rounds[0])


def unit_of(seconds: float) -> str:
    """The largest of `UNITS` that does not exceed so many seconds."""
    return next((unit for unit in UNITS if UNITS[unit] <= seconds), [*UNITS][-1])
