"""Figures 2 and 8 to 10: the autoencoder, f(x^k) over the bits that every node has sent.

MARINA + PermK, MARINA + RandK and EF21 + TopK with steps that are powers of two. The best needs the
fewest bits to the deepest tenth that all methods of a figure reach. Claims compare two at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import log2
from typing import Any

from mpisim.analysis import panels, style
from mpisim.analysis.claims import TENTHS
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import BestSteps
from mpisim.runs.log.reader import Log

from . import comparison

COMPRESSORS = ("permk", "randk", "topk")
NAMES = {"permk": "PermK", "randk": "RandK", "topk": "TopK"}
PAIRS = {"permk": "MARINA + PermK", "randk": "MARINA + RandK", "topk": "EF21 + TopK"}
LOOKS: dict[str, tuple[str, Any]] = {
    "permk": (style.COLOURS[2], "-"),
    "randk": (style.COLOURS[1], (0, (1, 1.2))),
    "topk": (style.COLOURS[0], (0, (4, 1.5))),
}
# Bits as the paper counts them, without TopK's indices; and those that were really sent.
BITS, SENT = Axis("paper_bits_up", log=False), Axis("bits_up", log=False)
LOSS = Axis("loss", log=True)
GAP = Axis("suboptimality", log=True)  # f(x^k) - f(x*): the regulariser's share of f(x*) is large
AXES = {"paper_bits_up": "bits per worker, without indices", "bits_up": "bits sent per worker"}

BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.98, 1.0)}
BESIDE |= {"handlelength": 1.4, "labelspacing": 0.3}

Panel = tuple[float, float]  # lambda, p-hat
Groups = dict[Panel, dict[str, BestSteps]]
Curves = Callable[[Any, Groups, Panel, Sequence[str], Axis], None]  # draws methods in a panel


def panel_of(log: Log) -> Panel:
    """lambda, as the paper's figures say it, and p-hat of a run."""
    problem = log.config["problem"]
    # the published code has no 1/2 before lambda
    return float(problem["lambda"]) / 2, float(problem["homogeneity"])


def unregularised(logs: Sequence[Log]) -> list[Log]:
    """The runs with lambda = 0, which Figure 2 shows."""
    return [log for log in logs if log.config["problem"]["lambda"] == 0]


def tuned(logs: Sequence[Log], names: Collection[str]) -> Groups:
    """The best steps of each panel and compressor, by the tenth that all ``names`` reach."""
    groups = comparison.tuned(logs, names, panel_of, BITS, GAP, TENTHS)
    lambdas = {panel_of(log)[0] for log in logs}  # Figures 2 and 8 share a folder
    return {panel: of for panel, of in groups.items() if panel[0] in lambdas}


def draw(
    title: str, curves: Curves, names: Sequence[str], axes: Sequence[Axis], logs: Sequence[Log]
) -> Any:
    """A row for each kind of bits and lambda, a column for each p-hat, with ``curves`` in each."""
    groups = tuned(logs, names)
    lambdas, ps = (sorted({panel[i] for panel in groups}) for i in (0, 1))
    rows = [(bits, one) for bits in axes for one in lambdas]

    def fill(panel: Any, row: tuple[Axis, float], p: float) -> None:
        bits, lambda_ = row
        curves(panel, groups, (lambda_, p), names, bits)
        panels.dress(panel, bits, LOSS, AXES[bits.name] if lambda_ == lambdas[-1] else "")

    labels = [f"λ = {lambda_:g}\n{LOSS.label(logs[0])}" for _, lambda_ in rows]
    titles = [rf"$\hat{{p}}$ = {p:g}" for p in ps]
    entries = panels.entries_of({PAIRS[name]: LOOKS[name] for name in names})
    title = f"{title}: {_setting(logs, groups)}"
    return panels.matrix(rows, ps, fill, labels=labels, titles=titles, entries=entries, title=title)


def _setting(logs: Sequence[Log], groups: Groups) -> str:
    """Size and length of the runs, and how many steps are not shown, for a title."""
    problem, run = logs[0].config["problem"], logs[0].config["run"]
    d, code = logs[0].attrs["dimension"], problem["code_size"]
    size = f"n = {logs[0].n}, {problem['images']} images, $d_e$ = {code}, d = {d}"
    bits = run.get("stop", {}).get("paper_bits_up")
    length = f"{bits / 1e3:g} kbit a worker" if bits else f"{run['rounds']} rounds"
    shown = [steps for one in groups.values() for steps in one.values()]
    tried, well = sum(len(s.tried) for s in shown), sum(len(s.steps) for s in shown)
    left = f"; {tried - well} of {tried} steps rise or diverge, and are left out"
    return f"{size}, {length}{left * (well < tried)}"


def best_step(panel: Any, groups: Groups, key: Panel, names: Sequence[str], bits: Axis) -> None:
    """The best step of each method, the mean over the seeds."""
    for name in names:
        if steps := groups.get(key, {}).get(name):
            label = f"γ = {_power(steps.step)}"
            panels.curve(panel, steps.logs, bits, LOSS, *LOOKS[name], label=label)
    panel.legend(fontsize=7, **BESIDE)


def all_steps(panel: Any, groups: Groups, key: Panel, names: Sequence[str], bits: Axis) -> None:
    """All steps of each method that went well: the larger, the darker; a band at the best."""
    for name in (name for name in names if name in groups.get(key, {})):
        best = groups[key][name]
        for place, (step, logs) in enumerate(sorted(best.steps.items()), 1):
            panels.curve(panel, logs, bits, LOSS, *LOOKS[name], band=step == best.step)
            alpha = 0.35 + 0.65 * place / len(best.steps)
            panel.lines[-1].set(alpha=alpha, label=f"γ = {_power(step)}")
    panel.legend(fontsize=6, **BESIDE)


def _power(step: float) -> str:
    """``2^-7``, for a legend."""
    return f"$2^{{{log2(step):g}}}$"
