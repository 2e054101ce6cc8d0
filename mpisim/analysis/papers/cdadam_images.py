"""CD-Adam, Figures 1, 3 and 5 to 10, Table 2, and its pi: image classification."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from mpisim.analysis import labels as words
from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim
from mpisim.analysis.curves import Axis
from mpisim.analysis.papers import networks as nets
from mpisim.runs.log.reader import Log

LOOKS: dict[str, tuple[str, Any]] = {
    "cd-adam": (style.COLOURS[0], "-"),
    "amsgrad": (style.COLOURS[1], (0, (4, 1.5))),
    "ef21-2way": (style.COLOURS[2], (0, (1, 1.2))),
    "1bit-adam": (style.COLOURS[3], (0, (5, 1.5, 1, 1.5))),
}
RIVALS = ("ef21-2way", "1bit-adam")
ALL: tuple[Axis, ...] = (
    nets.LOSS,
    nets.GRADIENT,
    nets.ACCURACY,
    nets.TEST_LOSS,
    nets.TEST_GRADIENT,
    nets.TEST_ACCURACY,
)
ABOUT = 1.6  # "around" 32 times, and 5 times: up to this factor
PI_SOURCE = "CD-Adam, Appendix D"
PI = (0.597, 0.713)

Pairs = tuple[tuple[Axis, str, Axis], ...]  # what CD-Adam is better in, than whom, at equal what


def pairs(x: Axis, rivals: Mapping[str, tuple[Axis, ...]]) -> Pairs:
    """Claims at equal x: for each rival, in what CD-Adam is better."""
    return tuple((y, rival, x) for rival, ys in rivals.items() for y in ys)


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure over the runs of one network, drawn as in the paper.

    axes : pairs of x and y, row by row, ``columns`` in a row.
    better : see `Pairs`. fewer : (rival, y, times) that CD-Adam saves bits against.
    pi : the paper's range of pi is checked, too.
    """

    source: str
    model: str
    methods: tuple[str, ...]
    axes: tuple[tuple[Axis, Axis], ...]
    columns: int
    better: Pairs = ()
    fewer: tuple[tuple[str, Axis, float], ...] = ()
    pi: bool = False

    INSTEAD = nets.INSTEAD
    FILES: ClassVar[dict[str, str]] = {"quick": "cdadam-images", "paper": "cdadam-images-paper"}

    @property
    def GRID(self) -> str:
        return f"cdadam-{self.model}"

    @property
    def METHODS(self) -> tuple[str, ...]:
        """Figure 1 alone shows AMSGrad, on ResNet-18."""
        return tuple(LOOKS) if self.model == "resnet18" else self.methods

    @property
    def SCALES(self) -> dict[str, list[str]]:
        own = [f"problem.model={self.model}"]
        return {"quick": own, "paper": own}

    def runs(self, logs: list[Log]) -> dict[str, Log]:
        """{method: its run}, in the order of the figure."""
        found = {str(log.attrs["method"]): log for log in logs}
        return {method: found[method] for method in self.methods if method in found}

    def draw(self, logs: list[Log]) -> Any:
        """The panels."""
        found = self.runs(logs)
        curves = [(words.method(method), log, *LOOKS[method]) for method, log in found.items()]
        return nets.grid(curves, self.axes, self.columns, nets.trained(curves[0][1]))

    def claims(self, logs: list[Log]) -> list[Claim]:
        """What the paper says of the figure; one that does not hold for a rival without a run."""
        found = self.runs(logs)
        if "cd-adam" not in found:
            return [self._missing("cd-adam")]
        own = found["cd-adam"]
        claims = [
            nets.times_fewer(own, found[rival], nets.BITS, y, times, ABOUT, self.source)
            for rival, y, times in self.fewer
            if rival in found
        ]
        claims += [pi_claim(own, PI_SOURCE)] * self.pi
        claims += [
            nets.better(own, found[m], y, x, self.source) for y, m, x in self.better if m in found
        ]
        return claims + [self._missing(m) for m in self.methods if m not in found]

    def _missing(self, method: str) -> Claim:
        name = words.method(method)
        what = f"not measured: no complete run of {name}"
        return Claim(
            f"CD-Adam against {name}" if method != "cd-adam" else name, self.source, what, False
        )


def _all(source: str, model: str, x: Axis, better: Mapping[str, tuple[Axis, ...]]) -> Figure:
    """Training above test: loss, gradient norm, accuracy."""
    axes = tuple((x, y) for y in ALL)
    return Figure(source, model, ("cd-adam", *RIVALS), axes, 3, pairs(x, better))


BOTH = dict.fromkeys(RIVALS, ALL)
TESTED, NORMS = (nets.TEST_LOSS, nets.TEST_ACCURACY), (nets.GRADIENT, nets.TEST_GRADIENT)
VALUES = (nets.LOSS, nets.TEST_LOSS, nets.ACCURACY, nets.TEST_ACCURACY)
LATER = {"ef21-2way": (*VALUES, *NORMS), "1bit-adam": (*TESTED, *NORMS)}

FIG1 = Figure(
    "CD-Adam, Figure 1",
    "resnet18",
    ("cd-adam", "amsgrad", "1bit-adam"),
    ((nets.BITS, nets.LOSS), (nets.BITS, nets.TEST_ACCURACY)),
    2,
    fewer=(("amsgrad", nets.LOSS, 32.0), ("1bit-adam", nets.LOSS, 5.0)),
    pi=True,
)
FIG3 = Figure(
    "CD-Adam, Section 7.2 and Figure 3",
    "resnet18",
    ("cd-adam", *RIVALS),
    (
        (nets.EPOCHS, nets.GRADIENT),
        (nets.BITS, nets.GRADIENT),
        (nets.BITS, nets.LOSS),
        (nets.BITS, nets.TEST_ACCURACY),
    ),
    4,
    pairs(nets.EPOCHS, dict.fromkeys(RIVALS, (nets.GRADIENT,)))
    + pairs(nets.BITS, dict.fromkeys(RIVALS, (nets.GRADIENT, nets.LOSS, nets.TEST_ACCURACY))),
)
FIG5 = _all("CD-Adam, Figure 5", "resnet18", nets.BITS, BOTH)
FIG6 = _all("CD-Adam, Figure 6", "resnet18", nets.EPOCHS, LATER)
FIG7 = _all("CD-Adam, Figure 7", "vgg16", nets.BITS, BOTH)
FIG8 = _all("CD-Adam, Figure 8", "vgg16", nets.EPOCHS, LATER)
FIG9 = _all("CD-Adam, Figure 9", "wrn-16-4", nets.BITS, BOTH)
FIG10 = _all("CD-Adam, Figure 10", "wrn-16-4", nets.EPOCHS, LATER)


class Table(Figure):
    """Table 2: seconds of an iteration, and bits of a whole run."""

    def rows(self, logs: list[Log]) -> list[tuple[str, float, float, float]]:
        """Method, seconds of a round, bits of a worker, the table's formula for them."""
        return [
            (method, float(log.column("seconds")[-1] / log.column("round")[-1]), *_bits(log))
            for method, log in self.runs(logs).items()
        ]

    def draw(self, logs: list[Log]) -> Any:
        """A picture of the table."""
        head = ("Method", "time (s / round)", "bits of a worker, both ways", "by the formula")
        rows = [
            (words.method(method), f"{seconds:.3g}", f"{bits:.4g}", f"{formula:.4g}")
            for method, seconds, bits, formula in self.rows(logs)
        ]
        with panels.styled():
            figure, drawn = panels.grid(1, 3)
            panel = drawn[0, 0]
            for other in drawn[0, 1:]:
                other.remove()
            figure.set_layout_engine("none")
            panel.set_position((0.03, 0.15, 0.94, 0.8))
            panel.axis("off")
            table = panel.table([head, *rows], loc="center", cellLoc="center")
            table.scale(1.0, 1.6)
            table.auto_set_font_size(False)
            table.set_fontsize(9)
            nets.caption(figure, nets.trained(next(iter(self.runs(logs).values()))), 3)
        return figure

    def claims(self, logs: list[Log]) -> list[Claim]:
        """The formulas of the bits, and which method takes more time."""
        rows = {method: row for method, *row in self.rows(logs)}
        claims = [
            self._of_bits(method, bits, formula) for method, (_, bits, formula) in rows.items()
        ]
        return claims + list(self._of_times({method: row[0] for method, row in rows.items()}))

    def _of_bits(self, method: str, bits: float, formula: float) -> Claim:
        share = bits / formula
        top = method == "ef21-2way"
        text = "EF21 sends at most" if top else f"{words.method(method)} sends"
        return Claim(
            f"{text} the bits of the table",
            self.source,
            f"{bits:.6g} and {formula:.6g}, {share:.6g} times",
            share <= 1 if top else share == 1,
            {"bits": bits, "formula": formula},
        )

    def _of_times(self, seconds: dict[str, float]) -> Iterator[Claim]:
        if {"cd-adam", "amsgrad", "ef21-2way"} <= seconds.keys():
            ratio = seconds["cd-adam"] / seconds["amsgrad"]
            text = "CD-Adam's overhead over uncompressed is small"
            said = f"{ratio:.3g} times the time (paper: 1.12; up to 1.25 holds)"
            yield Claim(text, self.source, said, ratio <= 1.25, {"ratio": ratio})
            ratio = seconds["ef21-2way"] / seconds["cd-adam"]
            said = f"{ratio:.3g} times the time (paper: 1.24)"
            text = "EF21 takes more time than CD-Adam"
            yield Claim(text, self.source, said, ratio > 1, {"ratio": ratio})


def _bits(log: Log) -> tuple[float, float]:
    """Payload bits of a worker, both ways, and Table 2's formula."""
    d, rounds = int(log.attrs["dimension"]), int(log.column("round")[-1])
    method = str(log.attrs["method"])
    warm = int(log.attrs["method_warmup"]) if method == "1bit-adam" else 0
    each = {"amsgrad": 32 * d, "cd-adam": 32 + d, "1bit-adam": 32 + d}.get(method, 0)
    if method == "ef21-2way":
        each = 64 * max(1, int(float(log.config["compressor"]["k"]) * d))
    return float(nets.BITS.values(log)[-1]), 2.0 * (32 * d * warm + each * (rounds - warm))


TABLE2 = Table(
    "CD-Adam, Table 2", "resnet18", ("amsgrad", "ef21-2way", "1bit-adam", "cd-adam"), (), 1
)


@dataclasses.dataclass(frozen=True)
class PiFigure:
    """The measured pi of the scaled sign on ResNet-18 (Appendix D)."""

    source: str = PI_SOURCE

    INSTEAD = nets.INSTEAD
    SCALES: ClassVar[dict[str, list[str]]] = {
        "quick": [],
        "paper": [
            "problem.data=cifar10",
            "problem.samples=0",
            "problem.workers=8",
            "problem.augment=true",
            "method.batch=128",
            "run.rounds=490",
            "run.log_every=10",
        ],
    }

    def draw(self, logs: list[Log]) -> Any:
        """Over the rounds: workers' mean and largest, the server's, and the paper's range."""
        log, looks = logs[0], ("-", (0, (1, 1.2)), (0, (4, 1.5)))
        texts = ("workers, mean", "workers, largest", "server")
        with panels.styled():
            figure, drawn = panels.grid(1, 1, (5.6, 3.0))
            panel = drawn[0, 0]
            panel.axhspan(*PI, color="#dddddd", linewidth=0)
            entries: list[tuple[str, dict[str, Any]]] = []
            for name, text, dash, colour in zip(
                ("pi_up", "pi_up_max", "pi_down"), texts, looks, style.COLOURS, strict=False
            ):
                y = nets.Named(name, log=False, text="pi")
                panels.curve(panel, [log], nets.ROUNDS, y, colour, dash)
                entries.append((text, {"color": colour, "linestyle": dash}))
            panels.dress(panel, nets.ROUNDS, nets.Named("pi_up", log=False), "round")
            panel.set_ylabel("pi")
            entries.append(("the paper's range", {"color": "#dddddd", "linewidth": 6}))
            panels.legend(figure, entries)
            nets.caption(figure, nets.trained(log), 2)
        return figure

    def claims(self, logs: list[Log]) -> list[Claim]:
        """That pi stays in the paper's range."""
        return [pi_claim(logs[0], self.source)]


def pi_claim(log: Log, source: str) -> Claim:
    """pi within [0.597, 0.713], mean over the workers, in every logged round."""
    pi = log.column("pi_up")
    pi = pi[np.isfinite(pi)]
    low, high = float(pi.min()), float(pi.max())
    return Claim(
        "pi of the scaled sign is within [0.597, 0.713] in the whole training",
        source,
        f"{low:.3f} to {high:.3f}, {len(pi)} rounds, {nets.trained(log)}",
        PI[0] <= low and high <= PI[1],
        {"low": low, "high": high},
    )


PI_FIGURE = PiFigure()
