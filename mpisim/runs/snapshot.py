"""Everything that a run holds between two rounds: the content of a checkpoint.

Workers' state is gathered in worker order and split again, so a run may resume on other ranks.
"""

from __future__ import annotations

import numpy as np

from mpisim.core.errors import InputError
from mpisim.methods.oracle import LazyGradients
from mpisim.runs.checkpoint import State
from mpisim.runs.evaluation import Evaluator
from mpisim.runs.setup import Setup


def collect(setup: Setup, evaluator: Evaluator, k: int, x: np.ndarray) -> State | None:
    """x^k and all state before round k, on rank 0; None elsewhere. Collective."""
    star = setup.star
    state: State = {"round": k, "x": x, "worker": {}, "server": {}, "points": {}}
    for name, value in setup.estimator.state().items():
        if isinstance(value, LazyGradients):
            state["points"][name] = value.x
        elif isinstance(value, np.ndarray) and value.ndim > 1:
            if len(value) != star.m:
                raise InputError(
                    f"method.name: state {name!r} of the estimator has shape {value.shape}; an"
                    f" array with two axes must have a row for each of this rank's {star.m} workers"
                )
            state["worker"][name] = star.gather_workers(value)
        else:
            state["server"][name] = value
    if not star.is_server:
        return None
    parts = {"optimizer": setup.optimizer.state(), "ledger": star.ledger.state()}
    return state | parts | evaluator.state()


def put_back(setup: Setup, evaluator: Evaluator, state: State) -> tuple[int, np.ndarray]:
    """Restore all state on this rank; returns the next round and its x."""
    star, k = setup.star, int(state["round"])
    mine = slice(star.first, star.first + star.m)
    worker, server, points = (state.get(part, {}) for part in ("worker", "server", "points"))
    own = {name: rows[mine] for name, rows in worker.items()}
    lazy = {name: LazyGradients(setup.problem, x) for name, x in points.items()}
    setup.estimator.restore(own | lazy | server)
    setup.optimizer.restore(state.get("optimizer", {}))
    star.ledger.restore(state["ledger"])
    setup.clock.reset()  # this start's set-up exchange repeats the one that was charged
    evaluator.restore(state, k)
    return k, state["x"]
