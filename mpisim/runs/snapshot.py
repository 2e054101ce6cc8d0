"""Everything that a run holds between two rounds: the content of a checkpoint.

Workers' state is gathered in worker order and split again, so a run may resume on other ranks.
"""

from __future__ import annotations

import numpy as np

from mpisim.comm.clock import PHASES
from mpisim.comm.ledger import COLUMNS as BITS
from mpisim.core.arrays import CHECKPOINT, to_host
from mpisim.core.errors import InputError
from mpisim.methods.oracle import LazyGradients
from mpisim.runs.checkpoint import State
from mpisim.runs.evaluation import Evaluator
from mpisim.runs.log.schema import LATER
from mpisim.runs.setup import Setup


def collect(setup: Setup, evaluator: Evaluator, k: int, x: np.ndarray) -> State | None:
    """x^k and all state before round k, on rank 0; None elsewhere. Collective."""
    star = setup.star
    state: State = {"round": k, "x": to_host(x, CHECKPOINT)}
    state |= {"worker": {}, "server": {}, "points": {}}
    for name, found in setup.estimator.state().items():
        value = to_host(found, CHECKPOINT)
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
    optimizer = setup.optimizer.state().items()
    parts = {"optimizer": {name: to_host(value, CHECKPOINT) for name, value in optimizer}}
    parts["ledger"] = star.ledger.state()
    return state | parts | evaluator.state()


def put_back(setup: Setup, evaluator: Evaluator, state: State) -> tuple[int, np.ndarray]:
    """Restore all state on this rank; returns the next round and its x.

    Raises `InputError` for what cannot be the state of this run.
    """
    try:
        _require_possible(setup, state)
        return _put_back(setup, evaluator, state)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"the checkpoint is not one of this run: its state {why}") from None


def _put_back(setup: Setup, evaluator: Evaluator, state: State) -> tuple[int, np.ndarray]:
    star, k = setup.star, int(state["round"])
    mine = slice(star.first, star.first + star.m)
    worker, server, points = (state.get(part, {}) for part in ("worker", "server", "points"))
    own = {name: rows[mine] for name, rows in worker.items()}
    lazy = {name: LazyGradients(setup.problem, x) for name, x in points.items()}
    setup.estimator.restore(lazy | _placed(setup, own | server))
    setup.optimizer.restore(_placed(setup, state.get("optimizer", {})))
    star.ledger.restore(state["ledger"])
    setup.clock.reset()  # this start's set-up exchange repeats the one that was charged
    evaluator.restore(state, k)
    return k, star.arrays.placed(state["x"], CHECKPOINT)


def _placed(setup: Setup, state: State) -> State:
    """State with its vectors, which have length d, where the problem's vectors live."""
    arrays, d = setup.star.arrays, setup.problem.d
    return {
        name: arrays.placed(value, CHECKPOINT) if np.shape(value)[-1:] == (d,) else value
        for name, value in state.items()
    }


def _require_possible(setup: Setup, state: State) -> None:
    """`ValueError` or `KeyError` for wrong shapes or types, and for counts below 0."""
    d, n, ledger = setup.problem.d, setup.star.n, state["ledger"]
    _require_array("x", state["x"], "f", (d,))
    _require_array("seconds", state["seconds"], "f", (len(PHASES),))
    _require_array("oracle_calls", np.asarray(state["oracle_calls"]), "i", ())
    older = len(ledger["totals"]) < len(BITS)
    _require_array("ledger.totals", ledger["totals"], "i", (len(BITS) - older * len(LATER),))
    _require_array("ledger.worker_bits_up", ledger["worker_bits_up"], "i", (n,))
    counts = state["seconds"], state["oracle_calls"], *ledger.values()
    if not all((np.asarray(values) >= 0).all() for values in counts):
        raise ValueError("counts below 0")
    for name, x in state.get("points", {}).items():
        _require_array(name, x, "f", (d,))
    for name, rows in state.get("worker", {}).items():
        _require_array(name, rows, "biuf", (n, *rows.shape[1:]))
    for name, value in (state.get("server", {}) | state.get("optimizer", {})).items():
        _require_array(name, np.asarray(value), "biuf", np.shape(value)[:1])


def require_shapes(setup: Setup, first: dict[str, tuple[int, ...]]) -> None:
    """`InputError` if the state lacks what there is ``first``, behind round 0, or has other shapes.

    Only vectors of dimension d must keep their shape: other arrays may grow.
    """
    found, d = setup.iteration.shapes(), setup.problem.d
    for name, shape in first.items():
        if name not in found:
            raise InputError(f"the checkpoint is not one of this run: its state lacks {name}")
        if shape[-1:] == (d,) and found[name] != shape:
            why = f"has {name} of shape {found[name]}"
            raise InputError(f"the checkpoint is not one of this run: its state {why}")


def _require_array(name: str, value: np.ndarray, kinds: str, shape: tuple[int, ...]) -> None:
    if value.dtype.kind not in kinds or value.shape != shape:
        raise ValueError(f"has {name} of type {value.dtype} and shape {value.shape}")
