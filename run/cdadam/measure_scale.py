"""Why EF21 ends with the smaller gradient norm in Figure 3: the scale of the weights.

    python -m run.cdadam.measure_scale [ROUNDS]

A batch norm undoes the scale of the convolution w before it: f(c w) = f(w), so the gradient at c w
is 1 / c times that at w. |w| |grad f| does not depend on c. Trains Figure 1's network with three
methods and seed 1, and prints the norms of w and of its gradient at the end. Beside |grad f|^2 with
the statistics of the chunks that pass through together stands that in evaluation mode, with their
mean, as the published code takes it with running averages.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import mpisim
from mpisim.analysis import labels
from mpisim.analysis.study import Grid, find
from mpisim.problems.torch.problem import TorchProblem
from mpisim.runs.experiment import parse

SEED = 1
METHODS = ("cd-adam", "amsgrad", "ef21-2way")
LAYERS = {"convolution 1": 0, "convolution 2": 3, "convolution 3": 6, "linear": 9}  # of small-cnn


def loaded(table: dict) -> TorchProblem:
    """The problem with all workers in this process."""
    workers = table["problem"]["workers"]
    problem = parse(table).problem.loaded(workers, 0, workers, SEED, np.dtype(np.float32))
    assert isinstance(problem, TorchProblem)
    return problem


def gradients_at(problem: TorchProblem, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """f, grad f(x), and the gradient in evaluation mode, over all training images; x: (d,)."""
    losses, gradients = problem.losses_and_gradients(torch.from_numpy(x.astype(np.float32)))  # type: ignore[arg-type]
    model, evaluated = problem.flat_model, []
    for shard in problem.shards:
        model.gradient(shard, problem.chunk, 0)  # leaves the mean of the chunks' statistics
        statistics = model.statistics.flat.clone()
        evaluated.append(model.test(statistics, shard, problem.chunk)[1].numpy().copy())
    return float(losses.mean()), np.asarray(gradients).mean(axis=0), np.mean(evaluated, axis=0)


def report(table: dict) -> None:
    """Train, and print a line for each layer."""
    x, problem = mpisim.run(parse(table)).x, loaded(table)
    f, gradient, evaluated = gradients_at(problem, x)
    squared, in_evaluation = (float(g.astype(float) @ g) for g in (gradient, evaluated))
    method = labels.method(table["method"]["name"])
    print(f"{method}: f {f:.3g}, |grad f|^2 {squared:.3g}, in evaluation mode {in_evaluation:.3g}")
    places = np.cumsum(problem.layers)[:-1]
    tensors, gradients = np.split(x, places), np.split(gradient, places)
    for name, i in LAYERS.items():
        w, g = np.linalg.norm(tensors[i]), np.linalg.norm(gradients[i])
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
