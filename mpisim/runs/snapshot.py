"""All that a run holds between two rounds, as arrays by name: what a checkpoint keeps.

The state of workers is gathered in worker order and shared out again, so that a run may resume on
other ranks than it was started with.
"""

from __future__ import annotations

import numpy as np

from mpisim.core.errors import InputError
from mpisim.methods.oracle import LazyGradients
from mpisim.runs.checkpoint import State, flatten, pick
from mpisim.runs.evaluation import Evaluator
from mpisim.runs.setup import Setup


def collect(setup: Setup, evaluator: Evaluator, k: int, x: np.ndarray) -> State | None:
    """x^k and all state before round k, on rank 0; None elsewhere. Collective."""
    star = setup.star
    worker: State = {}
    server: State = {}
    points: State = {}
    for name, value in setup.estimator.state().items():
        if isinstance(value, LazyGradients):
            points[name] = value.x
        elif isinstance(value, np.ndarray) and value.ndim > 1:
            _check_rows(name, value, star.m)
            worker[name] = star.gather_workers(value)
        else:
            server[name] = value
    if not star.is_server:
        return None
    return (
        {"round": k, "x": x}
        | evaluator.state()
        | flatten("worker", worker)
        | flatten("server", server)
        | flatten("points", points)
        | flatten("optimizer", setup.optimizer.state())
        | flatten("ledger", star.ledger.state())
    )


def put_back(setup: Setup, evaluator: Evaluator, state: State) -> tuple[int, np.ndarray]:
    """The round to go on with and its x, all state put back on this rank."""
    star, k = setup.star, int(state["round"])
    mine = slice(star.first, star.first + star.m)
    worker = {name: rows[mine] for name, rows in pick("worker", state).items()}
    points = {name: LazyGradients(setup.problem, x) for name, x in pick("points", state).items()}
    setup.estimator.restore(worker | points | pick("server", state))
    setup.optimizer.restore(pick("optimizer", state))
    star.ledger.restore(pick("ledger", state))
    setup.clock.reset()  # this start's set-up exchange repeats the one that was charged
    evaluator.restore(state, k)
    return k, state["x"]


def _check_rows(name: str, value: np.ndarray, m: int) -> None:
    if value.shape[0] != m:
        raise InputError(
            f"method.name: state {name!r} of the estimator has shape {value.shape}; an array with"
            f" two axes must have a row for each of this rank's {m} workers"
        )
