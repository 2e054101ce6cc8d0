"""A minibatch's gradients of the quick figures' networks, 4 workers on a core, against PyTorch.

The bare loop chooses the same samples, goes forward and back, and copies the gradient into a row.
Both sides alternate. Without PyTorch there are no rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from benchmarks.common import result, seconds, turns, write
from mpisim.core.errors import InputError
from mpisim.problems.base import Problem
from mpisim.runs.experiment import parse

WORKERS, BATCH, REPEATS = 4, 16, 10
NETWORKS = {  # as in run/cdadam: width and pool
    "small-cnn": (2.0, 2),
    "vgg16": (0.125, 2),
    "wrn-16-4": (0.25, 4),
}


def loaded(model: str) -> Problem:
    """The network on generated images."""
    width, pool = NETWORKS[model]
    problem = {"name": "torch", "data": "generated", "model": model, "width": width, "pool": pool}
    tables = {
        "problem": problem | {"workers": WORKERS, "device": "cpu"},
        "method": {"name": "gd", "stepsize": 0.1},
        "run": {"rounds": 1, "dtype": "float32"},
    }
    return parse(tables).problem.loaded(WORKERS, 0, WORKERS, 1, np.dtype("f4"))


def bare(model: str, problem: Problem, batch: np.ndarray) -> Callable[[], None]:
    """The same gradients by a plain loop, with a module of its own."""
    import torch

    from mpisim.problems.torch.models import MODELS

    shards = [shard.part(0, len(shard)) for shard in problem.shards]  # type: ignore[attr-defined]
    shape = shards[0][0].shape[1:]
    module = MODELS[model](tuple(shape), problem.classes, NETWORKS[model][0])  # type: ignore[attr-defined]
    loss = torch.nn.CrossEntropyLoss()
    chosen, rows = torch.from_numpy(batch), torch.empty((WORKERS, problem.d))
    module.train()

    def loop() -> None:
        for i, (inputs, targets) in enumerate(shards):
            module.zero_grad()
            loss(module(inputs[chosen[i]]), targets[chosen[i]]).backward()
            rows[i] = torch.cat([p.grad.reshape(-1) for p in module.parameters()])

    return loop


def main(path: str) -> None:
    """A row for each network."""
    rows = []
    for model in NETWORKS:
        try:
            problem = loaded(model)
        except InputError as error:
            print(f"skipped, passes of networks: {error}")
            break
        least = int(problem.rows.min())
        batch = np.random.default_rng(0).integers(0, least, (WORKERS, BATCH))
        x = problem.initial_point()
        plain = bare(model, problem, batch)
        measured, against = turns(
            lambda p=problem, x=x, b=batch: seconds(lambda: p.batch_gradients(x, b), REPEATS),  # type: ignore[misc]
            lambda f=plain: seconds(f, REPEATS),  # type: ignore[misc]
        )
        what = f"a pass of {model}, {WORKERS} workers / a bare PyTorch loop"
        rows.append(result(what, measured / 1e3, against / 1e3, "ms", "<= 1.1"))
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
