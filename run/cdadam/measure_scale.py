"""Why EF21 ends with the smaller gradient norm in Figure 3: the scale of the weights.

    python -m run.cdadam.measure_scale [ROUNDS]

A batch norm undoes the scale of the convolution w before it: f(c w) = f(w), so the gradient at c w
is 1 / c times that at w. |w| |grad f| does not depend on c. Trains Figure 1's network with three
methods and seed 1, and prints the norms of w and of its gradient at the end.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import mpisim
from mpisim.analysis import labels
from mpisim.analysis.study import Grid, find
from mpisim.runs.experiment import parse

SEED = 1
METHODS = ("cd-adam", "amsgrad", "ef21-2way")
LAYERS = {"convolution 1": 0, "convolution 2": 3, "convolution 3": 6, "linear": 9}  # of small-cnn


def gradient_at(table: dict, x: np.ndarray) -> tuple[float, list[np.ndarray], list[np.ndarray]]:
    """f, and the tensors of x and of grad f(x), over all training images; x has shape (d,)."""
    workers, dtype = table["problem"]["workers"], np.dtype(np.float32)
    problem = parse(table).problem.loaded(workers, 0, workers, SEED, dtype)
    losses, gradients = problem.losses_and_gradients(torch.from_numpy(x.astype(dtype)))  # type: ignore[arg-type]
    places = np.cumsum(problem.layers)[:-1]
    gradient = np.asarray(gradients).mean(axis=0)
    return float(losses.mean()), np.split(x, places), np.split(gradient, places)


def report(table: dict) -> None:
    """Train, and print a line for each layer."""
    f, x, gradient = gradient_at(table, mpisim.run(parse(table)).x)
    squared = sum(float(part @ part) for part in gradient)
    print(f"{labels.method(table['method']['name'])}: f {f:.3g}, |grad f|^2 {squared:.3g}")
    for name, i in LAYERS.items():
        w, g = np.linalg.norm(x[i]), np.linalg.norm(gradient[i])
        print(f"    {name}: |w| {w:.3g}, |grad f| {g:.3g}, product {w * g:.3g}", flush=True)


def main(arguments: list[str]) -> int:
    """Train with each method, for so many rounds if given."""
    study, figure = find("cdadam-fig3")
    assert isinstance(figure.source, Grid)
    _, grid = figure.source.all_points(study.folder, "quick")
    for table in grid:
        if table["method"]["name"] in METHODS and table["run"]["seed"] == SEED:
            if arguments:
                table["run"]["rounds"] = int(arguments[0])
            report(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
