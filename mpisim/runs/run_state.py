"""The state of a run between two rounds, and the step to the next one.

Workers' state is gathered in worker order and split again, so a run may resume on other ranks.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mpisim.comm.clock import EVALUATE, OPTIMIZER, OTHER
from mpisim.comm.star import Star
from mpisim.compressors.base import Compressor
from mpisim.core.arrays import CHECKPOINT, is_tensor, to_host
from mpisim.core.errors import InputError
from mpisim.core.protocols import Round
from mpisim.core.state import Stateful
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.estimators.batches import batch_size
from mpisim.methods.method_table import Method
from mpisim.methods.oracle import LazyGradients, Oracle
from mpisim.problems.base import Problem
from mpisim.runs.checkpoint import State
from mpisim.runs.evaluation import Evaluator
from mpisim.runs.experiment import Experiment, Run
from mpisim.runs.metrics import metrics_of

CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "dict": dict}
IMPOSSIBLE = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError


class RunState:
    """All that a run holds between two rounds, in parts that are bound to the ranks of ``star``.

    The loop, its rehearsal, a resumed run and `mpisim verify` make it here, from an experiment's
    specs, and advance it by `step`. Its `dump` is a checkpoint.

    Attributes
    ----------
    x : array, shape (d,)
        x^k.
    round : Round
        The round that is next, which `step` and `load` set.
    star, oracle, estimator, optimizer, metrics, evaluator : bound objects
    run : Run
        The experiment's ``[run]`` table, with how often rows are logged.
    """

    def __init__(
        self,
        experiment: Experiment,
        star: Star,
        round: Round,
        problem: Problem,
        compressor: Compressor,
        rows: np.ndarray,
    ):
        """rows : samples of each worker, shape (n,)"""
        self.star, self.round, self.problem = star, round, problem
        self.method: Method = experiment.method
        self.x = problem.initial_point()
        self.oracle = Oracle(problem, star.clock, int(rows.min()))
        self.estimator = self.method.estimator.bind(star, self.oracle, compressor)
        self.optimizer = self.method.optimizer.bind(round.rounds)
        self.run = _with_log_every(experiment.run, self.estimator, problem, rows)
        context = star, problem, self.optimizer, self.run.logs
        self.metrics = metrics_of(self.run.columns or (), *context)
        self.evaluator = Evaluator(star, self.oracle, self.metrics)
        self.parts: dict[str, Stateful] = {"estimator": self.estimator, "optimizer": self.optimizer}
        self.parts |= {f"metric {i}": metric for i, metric in enumerate(self.metrics)}

    def step(self, gamma: float) -> None:
        """x^{k+1} from x^k, a new array, with step size gamma. Collective."""
        star, method, k, x = self.star, self.method, self.round.k, self.x
        if self.metrics:
            star.clock.to(EVALUATE)
            for metric in self.metrics:
                metric.passed(x)
            star.clock.to(OTHER)
        g = self.estimator.start(x) if k == 0 else self.estimator.estimate(x)
        star.clock.to(OPTIMIZER)
        if method.schedule.at:
            gamma *= method.schedule.multiple(k, self.round.rounds)
        if method.weight_decay:
            g = g + method.weight_decay * x
        self.x = self.optimizer.step(x, g, gamma)
        star.clock.to(OTHER)
        star.end_round()
        self.round.k = k + 1

    def dump(self) -> State | None:
        """All state before round k, on rank 0; None elsewhere. Collective.

        It may share memory with the state.
        """
        parts: State = {name: {} for name in self.parts}
        for part, name, place, value in self._entries():
            if place == "PerWorker" or self.star.is_server:
                parts[part][name] = _packed(value, partial(self._leaf, part, name, True))
        if not self.star.is_server:
            return None
        state = {"round": self.round.k, "x": to_host(self.x, CHECKPOINT), "parts": parts}
        return state | {"ledger": self.star.ledger.state()} | self.evaluator.state()

    def load(self, state: State) -> None:
        """Restore what `dump` returned; `InputError` if it cannot be the state of this run."""
        try:
            self._require_possible(state)
            self._load(state)
        except IMPOSSIBLE as error:
            why = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise _not_this_run(why) from None

    def shapes(self) -> dict[str, tuple[int, ...] | None]:
        """The shape of each part of the state, by name; () for what is no array, None for None.

        `InputError` for a value that a checkpoint cannot hold.
        """
        found = {}
        for part, name, _, value in self._entries():
            _packed(value, partial(self._leaf, part, name, False))
            shape = None if value is None else tuple(getattr(value, "shape", ()))
            found[f"{part}.{name}"] = shape
        return found

    def require_shapes(self, first: dict[str, tuple[int, ...] | None]) -> None:
        """`InputError` if there is less than ``first``, behind round 0, or if it has other shapes.

        Only vectors of dimension d must keep their shape: other arrays may grow.
        """
        found, d = self.shapes(), self.problem.d
        for name, shape in first.items():
            if name not in found:
                raise _not_this_run(f"lacks {name}")
            if shape and shape[-1] == d and found[name] not in (shape, None):
                raise _not_this_run(f"has {name} of shape {found[name]}")

    def _entries(self) -> list[tuple[str, str, str, Any]]:
        """Part, name, place and value of all that is declared and set."""
        return [
            (title, name, part.declared[name].place, value)
            for title, part in self.parts.items()
            for name, value in part.state().items()
        ]

    def _leaf(self, part: str, name: str, gather: bool, value: Any) -> tuple[str, Any]:
        """The kind of a value that is no container, and its array; rank 0 gets that of all workers.

        Without ``gather`` it is only checked that there is one.
        """
        owner, star = self.parts[part], self.star
        place = owner.declared[name].place
        where = f"{type(owner).__module__}.{type(owner).__qualname__}.{name}"
        if isinstance(value, LazyGradients) and place == "PerWorker":
            return "gradients", to_host(value.x, CHECKPOINT)
        kind = "tensor" if is_tensor(value) else type(value).__name__
        array = isinstance(value, np.ndarray | np.generic)
        if not (kind == "tensor" or (array and value.dtype.kind in "biufc")):
            raise InputError(
                f"{where}: a checkpoint cannot hold a {kind}; allowed: arrays, numbers, strings,"
                " None, and lists, tuples and dicts of these"
            )
        if isinstance(value, np.generic):
            return "number", value
        rows = value.shape[:1]
        if place == "PerWorker" and rows != (star.m,):
            raise InputError(
                f"{where}: has shape {tuple(value.shape)}, but is PerWorker; it must have a row"
                f" for each of this rank's {star.m} workers"
            )
        if gather:
            value = to_host(value, CHECKPOINT)
            value = star.gather_workers(value) if place == "PerWorker" else value
        return ("tensor" if kind == "tensor" else "array"), value

    def _load(self, state: State) -> None:
        star = self.star
        for title, part in self.parts.items():
            saved, declared = state["parts"][title], part.declared
            for name in saved.keys() - declared.keys():
                raise ValueError(f"has {title}.{name}, which is not declared")
            part.restore({n: self._unpacked(declared[n].place, saved[n]) for n in saved})
        star.ledger.restore(state["ledger"])
        self.evaluator.restore(state)
        self.round.k, self.x = int(state["round"]), star.arrays.placed(state["x"], CHECKPOINT)

    def _unpacked(self, place: str, packed: State) -> Any:
        """The inverse of `_packed`, on this rank."""

        def value_of(node: Any) -> Any:
            if not isinstance(node, dict):
                return node
            [(kind, inside)] = node.items()
            if kind in CONTAINERS:
                return CONTAINERS[kind](map(value_of, inside))
            return self._restored(place, kind, packed[inside])

        return value_of(json.loads(packed["tree"]))

    def _restored(self, place: str, kind: str, found: Any) -> Any:
        """The inverse of `_leaf`, on this rank."""
        star, d = self.star, self.problem.d
        if kind == "gradients":
            _require_array(kind, found, "f", (d,))
            return LazyGradients(self.problem, found)
        array = np.asarray(found)
        _require_array(kind, array, "biufc", array.shape)
        if kind == "number":
            return array[()]
        if place == "PerWorker":
            _require_array(place, array, "biufc", (star.n, *array.shape[1:]))
            array = array[star.first : star.first + star.m].copy()
        elif place == "AtServer" and not star.is_server:
            array = np.zeros_like(array)
        return star.arrays.placed(array, CHECKPOINT) if kind == "tensor" else array

    def _require_possible(self, state: State) -> None:
        """`ValueError` or `KeyError` for wrong shapes or types, and for counts below 0."""
        given = state | state["ledger"]
        ours = {"x": to_host(self.x, CHECKPOINT)} | self.evaluator.state()
        for name, value in (ours | self.star.ledger.state()).items():
            own, found = np.asarray(value), np.asarray(given[name])
            _require_array(name, found, own.dtype.kind, own.shape)
            if name != "x" and (found < 0).any():
                raise ValueError("counts below 0")


def _with_log_every(run: Run, estimator: Estimator, problem: Problem, rows: np.ndarray) -> Run:
    """Where ``log_every`` is not given: 2 epochs of minibatches, say, or each round."""
    every, batch = 1, estimator.parameters().get("batch")
    if run.log_every is not None:
        return run
    if batch is not None:
        b = batch_size(batch, int(rows.min()), "batch")
        epoch = rows.sum() / (problem.n * b)
        every = max(1, round(problem.epochs_between_rows * epoch))
    return dataclasses.replace(run, log_every=every)


def _packed(value: Any, leaf: Callable[[Any], tuple[str, Any]]) -> State:
    """``value`` as HDF5 can hold it, with its exact types: a ``tree`` in JSON, arrays by number."""
    arrays: State = {}

    def node(v: Any) -> Any:
        if v is None or type(v) in (bool, int, float, str):
            return v
        kind = type(v).__name__
        if type(v) is CONTAINERS.get(kind):
            return {kind: [node(inner) for inner in (v.items() if kind == "dict" else v)]}
        kind, array = leaf(v)
        number = str(len(arrays))
        arrays[number] = array
        return {kind: number}

    return {"tree": json.dumps(node(value))} | arrays


def _not_this_run(why: str) -> InputError:
    return InputError(f"the checkpoint is not one of this run: its state {why}")


def _require_array(name: str, value: np.ndarray, kinds: str, shape: tuple[int, ...]) -> None:
    if value.dtype.kind not in kinds or value.shape != shape:
        raise ValueError(f"has {name} of type {value.dtype} and shape {value.shape}")
