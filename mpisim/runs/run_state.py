"""The state of a run between two rounds, and the step to the next one.

Workers' state is gathered in worker order and split again, so a run may resume on other ranks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from mpisim.comm.clock import EVALUATE, OPTIMIZER, OTHER
from mpisim.comm.debug import SERVER_ONLY, DebugStar, poison
from mpisim.comm.job import require_consistent
from mpisim.comm.star import Star
from mpisim.compressors.base import Compressor
from mpisim.core.arrays import is_tensor, to_host
from mpisim.core.errors import InputError
from mpisim.core.protocols import Round
from mpisim.core.state import Stateful
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.method_table import Method
from mpisim.methods.oracle import Oracle
from mpisim.problems.base import Problem
from mpisim.problems.explicit import ExplicitProblem, LazyGradients
from mpisim.runs import careful
from mpisim.runs.checkpoint import State, packed, unpacked
from mpisim.runs.debug import Debug, DebugOracle
from mpisim.runs.experiment import Experiment, Run
from mpisim.runs.log.untrusted import UNEXPECTED
from mpisim.runs.metrics import Evaluator, Events, Metric, Row, Tests

UNSENT = poison(SERVER_ONLY)  # the server's x^k on other ranks


class RunState:
    """All that a run holds between two rounds, in parts that are bound to the ranks of ``star``.

    The loop, its rehearsal, a resumed run and `mpisim verify` make it here, from an experiment's
    specs, and advance it by `step`. Its `dump` is a checkpoint.

    Attributes
    ----------
    x : array, shape (d,)
        x^k; from k = 1 on NaN off the server where it is the server's alone.
    round : Round
        The round that is next, which `step`, `restore` and `jump` set.
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
        flipped = None
        if star.attack is not None and star.attack.name == "label-flip":
            flipped = star.attack.bad(star.n)[star.first : star.first + star.m]
        kind = DebugOracle if isinstance(star, DebugStar) else Oracle
        self.oracle = kind(problem, star.clock, int(rows.min()), flipped)
        self.estimator = self.method.estimator.bind(star, self.oracle, compressor)
        self.hidden = self.estimator.server_point and not star.is_server
        self.optimizer = self.method.optimizer.bind(round.rounds)
        self._start, self._estimate = self.estimator.start, self.estimator.estimate
        if careful.is_plugin(self.estimator):
            calls = (partial(careful.estimate, self.estimator, n) for n in ("start", "estimate"))
            self._start, self._estimate = calls
        step = self.optimizer.step
        if careful.is_plugin(self.optimizer):
            step = partial(careful.step, self.optimizer)
        self._optimizer_step = step
        self.run = run = _with_log_every(experiment.run, self.estimator, problem, rows)
        kinds: list[type[Metric]] = [*experiment.run.metrics]
        kinds += [Tests] * problem.tested
        halves: dict[str, Stateful] = {"estimator": self.estimator, "optimizer": self.optimizer}
        context: dict[str, Any] = {"star": star, "problem": problem, **halves}
        context["logged"] = lambda k: run.logs(k) or k >= round.look
        self.metrics = [kind().bind(**context) for kind in kinds]
        for metric in self.metrics:
            star.attach(metric)
        if self.estimator.on_events or star.simulated:
            self.metrics.append(Events().bind(**context))
        self.evaluator = Evaluator(star, self.oracle)
        self.parts = halves | {f"metric {i}": metric for i, metric in enumerate(self.metrics)}
        self.debug: Debug | None = None
        if isinstance(star, DebugStar) and isinstance(self.oracle, DebugOracle):
            self.debug = Debug(self.method.name, star, self.oracle, self.parts)

    def step(self, gamma: float) -> None:
        """x^{k+1} from x^k, a new array, with step size gamma. Collective.

        gamma : of an ensemble, an array (runs, 1)
        """
        star, method, k, x = self.star, self.method, self.round.k, self.x
        if self.metrics:
            star.clock.to(EVALUATE)
            point = self.evaluated()
            for metric in self.metrics:
                careful.passed(metric, point)
            star.clock.to(OTHER)
        if method.schedule.at:
            gamma = gamma * method.schedule.multiple(k, self.round.rounds)
        self.round.stepsize = gamma
        if self.debug is not None:
            self.debug.begins()
        g = self._start(x) if k == 0 else self._estimate(x)
        star.clock.to(OPTIMIZER)
        if method.weight_decay:
            g = g + method.weight_decay * x
        eta = self.estimator.server_stepsize
        self.x = self._optimizer_step(x, g, gamma if eta is None else eta)
        if self.hidden:
            self.x = self.x + UNSENT
        star.clock.to(OTHER)
        if self.debug is not None:
            self.debug.ended(g, self.x)
        star.end_round()
        self.round.k = k + 1

    def evaluated(self) -> np.ndarray:
        """x^k on every rank, for the log alone: nothing is charged. Collective."""
        if not self.estimator.server_point:
            return self.x
        return self.star.arrays.placed(self.star.publish(to_host(self.x)))

    def metrics_at(self, x: np.ndarray) -> Row:
        """The columns of all metrics at x^k. Collective."""
        return {
            name: value
            for metric in self.metrics
            for (name, *_), value in zip(metric.columns, careful.values(metric, x), strict=True)
        }

    def jump(self, k: int, x: np.ndarray | None = None) -> None:
        """Go to round k, and to x if given, with other state of another round.

        Only a rehearsal and an ensemble may.
        """
        self.round.k, self.x = k, self.x if x is None else x

    def require_alike(self) -> None:
        """`InconsistentRanks` unless all have the same state of workers, rows apart. Collective."""
        facts = {
            f"{title}.{name}": _structure(value)
            for title, part, name, value in self._entries()
            if _of_workers(part, name)
        }
        require_consistent(self.star.side, facts)

    def dump(self) -> State | None:
        """All state before round k, on rank 0; None elsewhere. Collective.

        It may share memory with the state.
        """
        self.require_alike()
        parts: State = {title: {} for title in self.parts}
        for title, part, name, value in self._entries():
            if _of_workers(part, name) or self.star.is_server:
                parts[title][name] = packed(value, partial(self._gathered, part, name))
        if not self.star.is_server:
            return None
        state = {"round": self.round.k, "x": to_host(self.x), "parts": parts}
        return state | {"ledger": self.star.ledger.state()} | self.evaluator.state()

    def restore(self, state: State) -> None:
        """Restore what `dump` returned; `InputError` if it cannot be the state of this run."""
        try:
            self._require_possible(state)
            self._restore(state)
        except (*UNEXPECTED, RecursionError) as error:
            why = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise _not_this_run(why) from None

    def shapes(self) -> dict[str, tuple[int, ...] | None]:
        """The shape of each part of the state, by name; () for what is no array, None for None.

        `InputError` for a value that a checkpoint cannot hold.
        """
        shapes = {}
        for title, part, name, value in self._entries():
            packed(value, lambda v: (self._kind(part, name, v), None))  # noqa: B023 - called here
            shape = None if value is None else tuple(getattr(value, "shape", ()))
            shapes[f"{title}.{name}"] = shape
        return shapes

    def require_shapes(self, first: dict[str, tuple[int, ...] | None]) -> None:
        """`InputError` if anything of ``first``, of round 0, is missing or has another shape.

        Only vectors must keep their dimension d: other axes may grow, as of a history (t, d).
        """
        shapes, d = self.shapes(), self.problem.d
        for name, shape in first.items():
            if name not in shapes:
                raise _not_this_run(f"lacks {name}")
            if not shape or shape[-1] != d or (now := shapes[name]) is None:
                continue
            if (len(now), now[-1:]) != (len(shape), (d,)):
                raise _not_this_run(f"has {name} of shape {now}")

    def _entries(self) -> Iterator[tuple[str, Stateful, str, Any]]:
        """Title, part, name and value of all that is declared and set."""
        for title, part in self.parts.items():
            for name, value in part.state().items():
                yield title, part, name, value

    def _kind(self, part: Stateful, name: str, value: Any) -> str:
        """The kind of a value that is no container; `InputError` if a checkpoint cannot hold it."""
        place, m = part.declared[name].place, self.star.m
        where = f"{type(part).__module__}.{type(part).__qualname__}.{name}"
        every = isinstance(value, LazyGradients) and value.members is None
        if every and place == "PerWorker":
            return "gradients"
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return "number"
        tensor = is_tensor(value)
        if not (tensor or (isinstance(value, np.ndarray) and value.dtype.kind in "biufc")):
            raise InputError(
                f"{where}: a checkpoint cannot hold a {type(value).__name__}; allowed: arrays,"
                " numbers, strings, None, and lists, tuples and dicts of these"
            )
        if place == "PerWorker" and value.shape[:1] != (m,):
            raise InputError(
                f"{where}: has shape {tuple(value.shape)}, but is PerWorker; it must have a row"
                f" for each of this rank's {m} workers"
            )
        return "tensor" if tensor else "array"

    def _gathered(self, part: Stateful, name: str, value: Any) -> tuple[str, Any]:
        """The kind of a value that is no container, and its array; rank 0 gets all workers'."""
        kind = self._kind(part, name, value)
        if kind == "number":
            return kind, value
        if kind == "gradients":
            return kind, to_host(value.x)
        array = to_host(value)
        return kind, self.star.gather_workers(array) if _of_workers(part, name) else array

    def _restore(self, state: State) -> None:
        star = self.star
        for title, part in self.parts.items():
            saved, declared = state["parts"][title], part.declared
            for name in saved.keys() - declared.keys():
                raise ValueError(f"has {title}.{name}, which is not declared")
            restore = {n: partial(self._restored, declared[n].place) for n in saved}
            part.restore({n: unpacked(saved[n], restore[n]) for n in saved})
        star.ledger.restore(state["ledger"])
        self.evaluator.restore(state)
        self.round.k = int(state["round"])
        self.x = star.arrays.placed(state["x"])
        if self.hidden and self.round.k > 0:
            self.x = self.x + UNSENT

    def _restored(self, place: str, kind: str, saved: Any) -> Any:
        """The inverse of `_gathered`, on this rank."""
        star, d = self.star, self.problem.d
        if kind == "gradients":
            _require_array(kind, saved, "f", (d,))
            return cast(ExplicitProblem, self.problem).lazy_gradients(saved)
        array = np.asarray(saved)
        _require_array(kind, array, "biufc", array.shape)
        if kind == "number":
            return array[()]
        if place == "PerWorker":
            _require_array(place, array, "biufc", (star.n, *array.shape[1:]))
            array = array[star.first : star.first + star.m].copy()
        elif place == "AtServer" and not star.is_server:
            array = np.zeros_like(array)
        return star.arrays.placed(array) if kind == "tensor" else array

    def _require_possible(self, state: State) -> None:
        """`ValueError` or `KeyError` for wrong shapes or types, and for counts below 0."""
        given = state | state["ledger"]
        fresh = {"x": to_host(self.x)} | self.evaluator.state()
        for name, value in (fresh | self.star.ledger.state()).items():
            expected, saved = np.asarray(value), np.asarray(given[name])
            _require_array(name, saved, expected.dtype.kind, expected.shape)
            if name not in ("x", "start") and (saved < 0).any():
                raise ValueError("counts below 0")


def _structure(value: Any) -> str:
    """The containers of a value, and None; all else is an array."""
    tree = packed(value, lambda _: ("array", None))["tree"]
    return "an array" if tree == '{"array": "0"}' else tree


def _of_workers(part: Stateful, name: str) -> bool:
    return part.declared[name].place == "PerWorker"


def _with_log_every(run: Run, estimator: Estimator, problem: Problem, rows: np.ndarray) -> Run:
    """Where ``log_every`` is not given: 2 epochs of minibatches, say, or each round."""
    every, b = 1, estimator.batch_sizes().get("batch")
    if run.log_every is not None:
        return run
    if b is not None:
        epoch = rows.sum() / (problem.n * b)
        every = max(1, round(problem.epochs_between_rows * epoch))
    return dataclasses.replace(run, log_every=every)


def _not_this_run(why: str) -> InputError:
    return InputError(f"the checkpoint is not one of this run: its state {why}")


def _require_array(name: str, value: np.ndarray, kinds: str, shape: tuple[int, ...]) -> None:
    if value.dtype.kind not in kinds or value.shape != shape:
        raise ValueError(f"has {name} of type {value.dtype} and shape {value.shape}")
