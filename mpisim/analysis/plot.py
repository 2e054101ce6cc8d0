"""Draws logs: a curve for each group of runs, with mean and band over seeds."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis import framing as framing_of
from mpisim.analysis import legend, style
from mpisim.analysis.curves import FRAMING, Axis, over_seeds
from mpisim.analysis.frame import Frame, Limits
from mpisim.analysis.link_model import Links
from mpisim.analysis.modelled import ModelledSeconds, assumption
from mpisim.analysis.output import write_output
from mpisim.analysis.oversubscription import note
from mpisim.analysis.run_groups import RunGroup, common_title, group_runs
from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.runs.log.reader import read_all

SUFFIXES = (".png", ".pdf")  # of the figures of studies
LETTERS = 16  # of a footnote, in an inch
ALLOWED = (*SUFFIXES, ".svg")
UNDATED: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}


def draw(
    logs: Sequence[Path],
    x: str = "bits_up",
    y: str = "grad_norm_sq",
    *,
    per_worker: bool = True,
    linear_x: bool | None = None,
    linear_y: bool = False,
    title: str | None = None,
    network: Links | None = None,
    framing: bool = False,
    xlim: Limits | None = None,
    ylim: Limits | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    size: tuple[float, float] | None = None,
) -> Any:
    """A matplotlib figure of column ``y`` of the logs against column ``x``.

    Logs whose experiments differ only in the seed make one curve: the mean of log y (of y with
    ``linear_y``) and a band of one standard deviation. Axes are logarithmic, except x = round and
    those that ``linear_x`` and ``linear_y`` name. With ``per_worker``, columns that are summed
    over workers are divided by their number. With a ``network``, x must be "seconds", and shows
    the seconds that the runs would take there by `link_model`. With ``framing``, bits sent and
    received have their framing; without it, a footnote says where it is large. ``xlim`` and
    ``ylim`` are (low, high), either of which may be None; ``size`` is (width, height) in inches,
    with all that is on the page. Raises `InputError` for logs that cannot be read or drawn.
    """
    style.check_installed()
    linear = x == "round" if linear_x is None else linear_x
    axes = Axis(x, not linear, per_worker, framing), Axis(y, not linear_y, per_worker, framing)
    if framing and not {x, y} & FRAMING.keys():
        *others, last = FRAMING
        allowed = f"{', '.join(others)} or {last}"
        raise InputError(f"--framing: adds framing to bits; make --x or --y {allowed}")
    if network is not None:
        require(x == "seconds", "--x", x, "seconds, with --network")
        axes = ModelledSeconds(x, not linear, links=network), axes[1]
    frame = Frame(xlim, ylim, xlabel, ylabel, size)
    frame.check(*axes, title)
    timed, found = any(axis.timed for axis in axes), read_all(logs)
    groups = group_runs(found, by_ranks=timed)
    curves = [over_seeds(group.logs, *axes) for group in groups]
    named = common_title(groups) if title is None else title
    figure = _draw(groups, curves, axes, named, frame)
    remarks = [note(found) if timed else "", framing_of.note(groups, axes)]
    remarks += [assumption(found)] if network is not None else []
    letters = int(LETTERS * figure.get_figwidth())
    style.remark(figure, "\n".join(textwrap.fill(text, letters) for text in remarks if text))
    return figure


def check_output(output: Path) -> None:
    """Raise `InputError` unless ``output`` ends like a figure."""
    if output.suffix.lower() not in ALLOWED:
        raise InputError(f"{output}: a figure's name must end in {' or '.join(ALLOWED)}")


def _draw(
    groups: list[RunGroup], curves: list[Any], axes: tuple[Axis, Axis], title: str, frame: Frame
) -> Any:
    import matplotlib
    from matplotlib.figure import Figure  # draws with Agg or its PDF writer: no window

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the same figure whatever the user's matplotlibrc says
        matplotlib.rcParams.update(style.RC)
        figure = Figure(frame.size, layout="constrained")
        panel = figure.subplots()
        for place, (group, curve) in enumerate(zip(groups, curves, strict=True)):
            look = style.curve(*colour_and_dash(groups, place), place, len(groups))
            panel.plot(curve.x, curve.y, label=group.label, **look)
            if curve.low is not None:
                panel.fill_between(
                    curve.x, curve.low, curve.high, color=look["color"], alpha=0.18, linewidth=0
                )
        _dress(panel, groups, axes, title, frame)
        legend.place(panel, may_grow=frame.size is None)
    return figure


def colour_and_dash(groups: list[RunGroup], place: int) -> tuple[int, int]:
    """Numbers of colour and dash; where methods and variants cross, the colour is the variant."""
    methods = list(dict.fromkeys(group.method for group in groups))
    variants = list(dict.fromkeys(group.variant for group in groups))
    if len(groups) > max(len(methods), len(variants)):
        return variants.index(groups[place].variant), methods.index(groups[place].method)
    return place, place


def _dress(
    panel: Any, groups: list[RunGroup], axes: tuple[Axis, Axis], title: str, frame: Frame
) -> None:
    x, y = axes
    log = groups[0].logs[0]
    panel.set(xscale="log" if x.log else "linear", yscale="log" if y.log else "linear")
    panel.set(xlabel=x.label(log), ylabel=y.label(log), title=title)
    panel.margins(x=0.02)
    frame.apply(panel)
    for axis, ticks, limits in ((x, panel.xaxis, panel.get_xlim), (y, panel.yaxis, panel.get_ylim)):
        if axis.log:
            style.log_ticks(ticks, *limits())


def save(figure: Any, output: Path) -> None:
    """Write a figure; the same logs give the same bytes. `InputError` where that fails."""
    import matplotlib

    picture, kind = io.BytesIO(), output.suffix[1:].lower()
    metadata = UNDATED.get(kind, {})  # the file would hold the time of writing
    with matplotlib.rc_context({key: style.RC[key] for key in ("pdf.fonttype", "svg.hashsalt")}):
        figure.savefig(picture, format=kind, dpi=style.RC["savefig.dpi"], metadata=metadata)
    write_output(output, picture.getvalue())
