"""What the figures of the PermK paper on the autoencoder, 2 and 8 to 10, have in common.

f(x^k) over the bits that every node has sent, for MARINA + PermK, MARINA + RandK and EF21 + TopK,
with steps that are powers of two; the best by the rule of the paper's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any

import numpy as np

from mpisim.analysis import labels as words
from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, fewer, number
from mpisim.analysis.curves import Axis
from mpisim.analysis.tune import best
from mpisim.runs.log.reader import Log

GRID = "permk-autoencoder"
COMPRESSORS = ("permk", "randk", "topk")
# As in the paper: all of MNIST, n = 1000, d = 25,088, K = 26. The steps of its code, 2^-5 to 2^3
# for a loss that is divided by 784, are 2^-14.6 to 2^-6.6 here; the smallest are left out.
_STEPS = ", ".join(repr(2.0**i) for i in range(-12, -5))
_PAIRS = (
    '{method = {name = "marina"}, compressor = {name = "permk"}}',
    '{method = {name = "marina"}, compressor = {name = "randk", k = 26}}',
    '{method = {name = "ef21"}, compressor = {name = "topk", k = 26}}',
)
SCALES: dict[str, list[str]] = {
    "quick": [],
    "paper": [
        "problem.workers=1000",
        "problem.images=60000",
        "problem.code_size=16",
        "run.rounds=4000",
        f"sweep.methods=[{', '.join(_PAIRS)}]",
        f"sweep.method.stepsize=[{_STEPS}]",
    ],
}
NAMES = {"permk": "PermK", "randk": "RandK", "topk": "TopK"}
LOOKS: dict[str, tuple[str, Any]] = {
    "permk": (style.COLOURS[2], "-"),
    "randk": (style.COLOURS[1], (0, (1, 1.2))),
    "topk": (style.COLOURS[0], (0, (4, 1.5))),
}
F = "loss"
BITS, PAPER_BITS = Axis("bits_up", log=False), Axis("paper_bits_up", log=False)
LOSS = Axis(F, log=True)

Panel = tuple[float, float]  # lambda, p-hat
Steps = dict[float, Log]  # {step: run}
Runs = dict[Panel, dict[str, Steps]]


def runs(logs: Sequence[Log]) -> Runs:
    """{(lambda, p-hat): {compressor: {step: run}}}, all ascending."""
    found: Runs = {}
    for log in sorted(logs, key=lambda log: float(log.attrs["stepsize"])):
        problem = log.config["problem"]
        panel = float(problem["lambda"]), float(problem["homogeneity"])
        own = found.setdefault(panel, {})
        own.setdefault(str(log.attrs["compressor"]), {})[float(log.attrs["stepsize"])] = log
    return {panel: found[panel] for panel in sorted(found)}


def finest(found: Runs, panel: Panel, compressor: str) -> list[Log]:
    """The run with the best step, by the rule of the paper's code; none where there is none."""
    steps = found.get(panel, {}).get(compressor, {})
    choices = best([log.path for log in steps.values()], "mean-loss")
    chosen = [str(path) for choice in choices if choice.best for path in choice.best.logs]
    return [log for log in steps.values() if str(log.path) in chosen]


def step_of(log: Log) -> str:
    """``2^-7``, for a legend."""
    return f"$2^{{{log2(float(log.attrs['stepsize'])):g}}}$"


def setting(logs: Sequence[Log]) -> str:
    """Size and length of the runs, for a title."""
    log = logs[0]
    problem, run = log.config["problem"], log.config["run"]
    d, code = log.attrs["dimension"], problem["code_size"]
    size = f"n = {log.n}, {problem['images']} images, $d_e$ = {code}, d = {d}"
    return f"{size}, {run['rounds']} rounds; runs that diverged are left out"


def draw(logs: Sequence[Log], title: str, compressors: Sequence[str], *, all_steps: bool) -> Any:
    """A row for each lambda, a column for each p-hat; the best step of each, or all steps."""
    found = runs(logs)
    lambdas, ps = (list(dict.fromkeys(panel[i] for panel in found)) for i in (0, 1))
    with panels.styled():
        figure, grid = panels.grid(len(lambdas), len(ps))
        for row, lambda_ in zip(grid, lambdas, strict=True):
            for panel, p in zip(row, sorted(ps), strict=True):
                (_all_steps if all_steps else _best)(panel, found, (lambda_, p), compressors)
                panels.dress(
                    panel, BITS, LOSS, BITS.label(logs[0]) if lambda_ == lambdas[-1] else ""
                )
            row[0].set_ylabel(f"λ = {lambda_:g}\n{LOSS.label(logs[0])}")
        for panel, p in zip(grid[0], sorted(ps), strict=True):
            panel.set_title(rf"$\hat{{p}}$ = {p:g}")
        entries = [
            (
                f"{_method(name)} + {NAMES[name]}",
                {"color": LOOKS[name][0], "linestyle": LOOKS[name][1]},
            )
            for name in compressors
        ]
        panels.legend(figure, entries, f"{title}: {setting(logs)}")
    return figure


def _method(compressor: str) -> str:
    return words.method("ef21" if compressor == "topk" else "marina")


def _best(panel: Any, found: Runs, key: Panel, compressors: Sequence[str]) -> None:
    for name in compressors:
        for log in finest(found, key, name):
            panels.curve(panel, [log], BITS, LOSS, *LOOKS[name])
            panel.lines[-1].set_label(f"γ = {step_of(log)}")
    panel.legend(fontsize=7, loc="upper right", handlelength=1.8)


def _all_steps(panel: Any, found: Runs, key: Panel, compressors: Sequence[str]) -> None:
    for name in compressors:
        steps = found.get(key, {}).get(name, {})
        for place, log in enumerate(steps.values()):
            panels.curve(panel, [log], BITS, LOSS, *LOOKS[name])
            line = panel.lines[-1]  # the larger the step the darker
            line.set(alpha=0.35 + 0.65 * (place + 1) / len(steps), label=f"γ = {step_of(log)}")
    panel.legend(fontsize=6, loc="lower left", handlelength=1.8, labelspacing=0.2)


def better(found: Runs, panel: Panel, less: str, more: str, source: str) -> Claim:
    """That ``less`` needs fewer bits than ``more`` to the smallest f that both reached."""
    text = f"{where(panel)}: {NAMES[less]} needs fewer bits than {NAMES[more]}"
    own = finest(found, panel, less), finest(found, panel, more)
    claim = fewer(text, source, *own, BITS, F)
    if "ratios" not in claim.details:
        return claim
    paper = float(fewer(text, source, *own, PAPER_BITS, F).details["median_ratio"])
    details = claim.details | {"paper_ratio": paper, "steps": _steps(own)}
    level = float(claim.details["level"])
    measured = f"{number(claim.details['median_ratio'])} times, to f = {level:.4g}"
    measured += f" ({number(paper)} as the paper counts, without indices)"
    return Claim(text, source, measured, claim.holds, details)


def ratio(found: Runs, panel: Panel, less: str, more: str) -> float:
    """What `better` measured; NaN where it did not."""
    return float(better(found, panel, less, more, "").details.get("median_ratio", np.nan))


def _steps(own: tuple[list[Log], list[Log]]) -> list[float]:
    return [float(log.attrs["stepsize"]) for logs in own for log in logs]


def where(panel: Panel) -> str:
    """A panel in words."""
    return f"λ = {panel[0]:g}, p-hat = {panel[1]:g}"


def tolerated(found: Runs, panel: Panel, compressor: str) -> float:
    """The largest step whose run neither diverged nor ended above f(x^0); 0 without one."""
    steps = found.get(panel, {}).get(compressor, {})
    good = [step for step, log in steps.items() if log.column(F)[-1] < log.column(F)[0]]
    return max(good, default=0.0)


def steps_claim(
    found: Runs, panel: Panel, one: str, other: str, source: str, *, alike: bool = False
) -> Claim:
    """That ``one`` tolerates larger steps than ``other``, or about the same (within 2 times)."""
    what = "about the same steps as" if alike else "larger steps than"
    text = f"{where(panel)}: {NAMES[one]} tolerates {what} {NAMES[other]}"
    first, second = (tolerated(found, panel, name) for name in (one, other))
    if not first or not second:
        return Claim(text, source, "not measured: no run of one of them went well", False)
    measured = f"2^{log2(first):g} and 2^{log2(second):g} are the largest that went well"
    holds = 0.5 <= first / second <= 2 if alike else first > second
    return Claim(text, source, measured, holds, {"steps": [first, second]})
