"""The demo: gradient descent against four compressed methods, each with its best step.

Usage: mpirun -n 2 .venv/bin/python -m tools.demo

Tunes all steps of grid.toml side by side, repeats the best of each method with three seeds, alone
on all ranks so that their seconds count, and draws them over bits and over the seconds that they
would take where the server has a line of 100 Mbit/s. It needs neither data sets nor a network.
Started by `make demo`.

The data is of generated documents: sparse rows of many features, unlike for each worker. As in
text, few words are frequent and most are rare. Each topic has its own frequent words, and the rows
of a topic follow one another, so that a contiguous split gives each worker a topic of its own. The
labels come from a planted linear model with noise.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mpisim
from mpisim.analysis import panels, style
from mpisim.analysis.costs import Costs, Target
from mpisim.analysis.curves import Axis
from mpisim.analysis.link_model import ModelledSeconds
from mpisim.analysis.results import small_png
from mpisim.analysis.run_groups import name_of
from mpisim.analysis.tune import best
from mpisim.comm.communicators import all_ranks
from mpisim.comm.links import parse
from mpisim.core.files import write_atomic
from mpisim.runs.labels import by_key
from mpisim.runs.log.reader import Log

FOLDER, PICTURE = Path("logs/demo"), Path("figures/demo.png")
SEEDS = [1, 2, 3]
LINKS = parse("100mbit,shared")
TARGET = Target("grad_norm_sq", 1e-8)
BITS, GRADIENT = Axis("bits_up", log=True), Axis("grad_norm_sq", log=True)
SECONDS = ModelledSeconds("seconds", log=True, links=LINKS)
AXES = (
    (BITS, "bits sent per worker"),
    (SECONDS, "seconds, all traffic on the server's 100 Mbit/s"),
)
PANEL = (3.9, 2.7)  # inches
ROWS, WORDS, LENGTH = 200, 20_000, 80  # documents of a topic, dictionary, words of a document
SPREAD = 1.5  # of the logarithm of a word's frequency over the topics
NOISE = 0.3  # of a margin, as a share of the margins' standard deviation


def main() -> int:
    """Tune, run, draw."""
    comm = all_ranks()
    grid = tomllib.loads(Path(__file__).with_name("grid.toml").read_text())
    if comm.rank == 0:
        FOLDER.mkdir(parents=True, exist_ok=True)
        data = libsvm(topics=grid["problem"]["workers"]).encode()
        write_atomic(FOLDER / "words", data, shared=True)
    comm.Barrier()
    tuned = best(mpisim.sweep(grid, FOLDER / "tuning"), "rounds")
    steps = {choice.settings["method.name"]: choice.best.step for choice in tuned if choice.best}
    comm.Barrier()
    points = mpisim.sweep(repeated(grid, steps), FOLDER / "best")
    if comm.rank == 0:
        logs = mpisim.load([point.log for point in points]).logs
        PICTURE.parent.mkdir(exist_ok=True)
        write_atomic(PICTURE, small_png(draw(logs)), shared=True)
        print(f"\n{Costs(logs, [TARGET], LINKS)}\n\nlogs: {FOLDER}   picture: {PICTURE}")
    return 0


def repeated(grid: dict[str, Any], steps: dict[str, float]) -> dict[str, Any]:
    """The grid with each method at its step, three seeds, and all ranks for each run."""
    methods = [one | {"steps": [steps[one["method"]["name"]]]} for one in grid["sweep"]["methods"]]
    run = grid["run"] | {"ranks": "all"}
    return grid | {"run": run, "sweep": {"seeds": SEEDS, "methods": methods}}


def draw(logs: Sequence[Log]) -> Any:
    """|grad f|^2 over bits and over modelled seconds, a curve for each method."""
    curves = by_key(logs, lambda log: name_of(log).removesuffix(" (groups = 1)"))
    looks = {name: (colour, "-") for name, colour in zip(curves, style.COLOURS, strict=False)}
    with style.styled(style.PANELS):
        figure, (row,) = panels.grid(1, 2, PANEL)
        for panel, (x, label) in zip(row, AXES, strict=True):
            for name, (colour, dash) in looks.items():
                panels.curve(panel, curves[name], x, GRADIENT, colour, dash)
            panels.dress(panel, x, GRADIENT, label)
        row[0].set_ylabel(GRADIENT.label(logs[0]))
        panels.legend(figure, panels.entries_of(looks), columns=3)
    return figure


def libsvm(topics: int, seed: int = 0) -> str:
    """LibSVM text: ``topics`` times `ROWS` rows of norm 1, with labels +1 and -1."""
    draw = np.random.default_rng(seed)
    frequency = 1.0 / (10.0 + np.arange(WORDS))
    weights = draw.standard_normal(WORDS)
    rows = [
        _document(draw, frequency * np.exp(SPREAD * deviation))
        for deviation in draw.standard_normal((topics, WORDS))
        for _ in range(ROWS)
    ]
    margins = np.array([values @ weights[words] for words, values in rows])
    margins += NOISE * margins.std() * draw.standard_normal(len(rows))
    return "".join(_line(*row, margin) for row, margin in zip(rows, margins, strict=True))


def _document(draw: np.random.Generator, frequency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The words of a document, ascending, and their weights: counts, less for frequent words."""
    cumulative = np.cumsum(frequency)
    drawn = np.searchsorted(cumulative, draw.random(LENGTH) * cumulative[-1])
    words, counts = np.unique(drawn, return_counts=True)
    values = counts * np.log(cumulative[-1] / frequency[words])
    return words, values / np.linalg.norm(values)


def _line(words: np.ndarray, values: np.ndarray, margin: float) -> str:
    entries = " ".join(f"{j + 1}:{v:.4g}" for j, v in zip(words, values, strict=True))
    return f"{'+1' if margin > 0 else '-1'} {entries}\n"


if __name__ == "__main__":
    sys.exit(main())
