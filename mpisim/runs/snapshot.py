"""All that a run holds between two rounds, as arrays by name: what a checkpoint keeps.

The state of workers is gathered in worker order and dealt out again, so that a run may go on with
other ranks than it was started with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mpisim.methods.oracle import LazyGradients
from mpisim.runs.checkpoint import State, flatten, pick

if TYPE_CHECKING:
    from mpisim.runs.engine import Engine


def collect(engine: Engine, k: int, x: np.ndarray) -> State | None:
    """x^k and all state before round k, on rank 0; None elsewhere. Collective."""
    estimator, star = engine.estimator, engine.star
    held = {name: getattr(estimator, name) for name in estimator.worker_state if k > 0}
    points = {name: rows.x for name, rows in held.items() if isinstance(rows, LazyGradients)}
    worker: dict[str, Any] = {
        name: star.gather_workers(rows) for name, rows in held.items() if name not in points
    }
    if not star.is_server:
        return None
    server = {name: getattr(estimator, name) for name in estimator.server_state if k > 0}
    state: State = {
        "round": k,
        "x": x,
        "oracle_calls": engine.evaluator.calls,
        "seconds": engine.evaluator.path.seconds,
    }
    if engine.measured is not None:
        state["measured"] = engine.measured
    state |= flatten("worker", worker) | flatten("server", server) | flatten("points", points)
    return (
        state
        | flatten("optimizer", engine.optimizer.state)
        | flatten("ledger", star.ledger.state())
    )


def put_back(engine: Engine, state: State) -> tuple[int, np.ndarray]:
    """The round to go on with and its x, all state put back on this rank."""
    estimator, star = engine.estimator, engine.star
    mine = slice(star.first, star.first + star.m)
    for name, rows in pick("worker", state).items():
        setattr(estimator, name, rows[mine])
    for name, point in pick("points", state).items():
        setattr(estimator, name, LazyGradients(engine.problem, point))
    for name, value in pick("server", state).items():
        setattr(estimator, name, value)
    engine.optimizer.state = pick("optimizer", state)
    star.ledger.restore(pick("ledger", state))
    engine.clock.restart()  # this start's set-up exchange repeats the one that was charged
    engine.evaluator.path.seconds = state["seconds"].tolist()
    engine.oracle.calls = int(state["oracle_calls"]) if star.is_server else 0
    engine.measured = state.get("measured")
    return int(state["round"]), state["x"]
