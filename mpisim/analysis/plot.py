"""Curves of logs: one for each setting, mean and band over seeds. matplotlib loads when drawing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis import labels as words
from mpisim.analysis import style
from mpisim.analysis.curves import Axis, over_seeds
from mpisim.analysis.link_model import Network
from mpisim.analysis.modelled import Modelled
from mpisim.analysis.settings import Setting, group
from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.runs.log.reader import read_all

SUFFIXES = (".png", ".pdf")
LEGEND_INSIDE = 6


def plot(
    logs: Sequence[Path],
    x: str = "bits_up",
    y: str = "grad_norm_sq",
    output: Path = Path("figure.png"),
    *,
    per_worker: bool = True,
    linear_x: bool | None = None,
    linear_y: bool = False,
    title: str | None = None,
    network: Network | None = None,
) -> None:
    """Draw column ``y`` of the logs against column ``x`` into ``output`` (.png or .pdf).

    Logs whose experiments differ only in the seed make one curve: the mean of log y (of y with
    ``linear_y``) and a band of one standard deviation. Axes are logarithmic, but x = round, and
    those that ``linear_x`` and ``linear_y`` say. With ``per_worker``, columns that are summed
    over workers are divided by their number. With a ``network``, x must be seconds, and
    they are those that the logs' bits would take there. Raises `InputError` for what cannot be
    read, drawn or written.
    """
    check_output(output)
    linear = x == "round" if linear_x is None else linear_x
    axes = Axis(x, not linear, per_worker), Axis(y, not linear_y, per_worker)
    if network is not None:
        require(x == "seconds", "--x", x, "seconds, with --network")
        axes = Modelled(x, not linear, network=network), axes[1]
    timed = any(axis.name == "seconds" or axis.name.startswith("time_") for axis in axes)
    settings = group(read_all(logs), by_ranks=timed)
    curves = [over_seeds(setting.logs, *axes) for setting in settings]
    figure = _draw(settings, curves, axes, common_title(settings) if title is None else title)
    save(figure, output)


def check_output(output: Path) -> None:
    """Raise `InputError` unless ``output`` has the name of a figure."""
    if output.suffix.lower() not in SUFFIXES:
        raise InputError(f"{output}: a figure's name must end in {' or '.join(SUFFIXES)}")


def common_title(settings: list[Setting]) -> str:
    """What all curves share: the experiments' title, or method and compressor, problem, workers."""
    logs = [log for setting in settings for log in setting.logs]
    titles = {str(log.attrs.get("title", "")) for log in logs}
    if len(titles) == 1 and "" not in titles:
        return titles.pop()
    how = [
        _shared(words.method(str(log.config.get("method", {}).get("name", ""))) for log in logs),
        _shared(words.compressor(log.config.get("compressor", {})) for log in logs),
    ]
    what = [
        _shared(words.problem(log.config.get("problem", {})) for log in logs),
        _shared(f"{log.n} worker{'s' if log.n > 1 else ''}" for log in logs),
    ]
    lines = (", ".join(part for part in parts if part) for parts in (how, what))
    return "\n".join(line for line in lines if line)


def _shared(texts: Iterable[str]) -> str:
    """The text, if all are the same."""
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


def _draw(settings: list[Setting], curves: list[Any], axes: tuple[Axis, Axis], title: str) -> Any:
    import matplotlib
    from matplotlib.figure import Figure  # draws with Agg or its PDF writer: no window

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the same figure whatever the user's matplotlibrc says
        matplotlib.rcParams.update(style.RC)
        figure = Figure(layout="constrained")
        panel = figure.subplots()
        for place, (setting, curve) in enumerate(zip(settings, curves, strict=True)):
            look = style.curve(*_look(settings, place), place, len(settings))
            panel.plot(curve.x, curve.y, label=setting.label, **look)
            if curve.low is not None:
                panel.fill_between(
                    curve.x, curve.low, curve.high, color=look["color"], alpha=0.18, linewidth=0
                )
        _dress(panel, settings, axes, title)
    return figure


def _look(settings: list[Setting], place: int) -> tuple[int, int]:
    """Numbers of colour and dash: where methods and variants cross, a colour says the variant."""
    methods = list(dict.fromkeys(s.method for s in settings))
    variants = list(dict.fromkeys(s.variant for s in settings))
    if len(settings) > max(len(methods), len(variants)):
        return variants.index(settings[place].variant), methods.index(settings[place].method)
    return place, place


def _dress(panel: Any, settings: list[Setting], axes: tuple[Axis, Axis], title: str) -> None:
    x, y = axes
    log = settings[0].logs[0]
    panel.set_xscale("log" if x.log else "linear")
    panel.set_yscale("log" if y.log else "linear")
    panel.set_xlabel(x.label(log))
    panel.set_ylabel(y.label(log))
    panel.set_title(title)
    panel.margins(x=0.02)
    if x.log:
        style.log_ticks(panel.xaxis, *panel.get_xlim())
    if y.log:
        style.log_ticks(panel.yaxis, *panel.get_ylim())
    if len(settings) > LEGEND_INSIDE:
        panel.figure.set_figwidth(style.WIDE)
        panel.legend(handlelength=3, loc="upper left", bbox_to_anchor=(1.02, 1.0))
    elif len(settings) > 1:
        panel.legend(handlelength=3)


def save(figure: Any, output: Path) -> None:
    """Write a figure, the same bytes for the same logs; `InputError` where that fails."""
    import matplotlib

    # No time of writing in the file: the same logs give the same bytes.
    metadata = {"CreationDate": None} if output.suffix.lower() == ".pdf" else {}
    with matplotlib.rc_context({"pdf.fonttype": style.RC["pdf.fonttype"]}):
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(output, dpi=style.RC["savefig.dpi"], metadata=metadata)
        except OSError as error:
            raise InputError(f"{output}: cannot be written: {error.strerror}") from None
