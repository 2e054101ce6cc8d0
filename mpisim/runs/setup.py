"""Set up one experiment on this rank, for a run, a report or a check."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from mpisim.comm.clock import Clock, WaitingClock
from mpisim.comm.communicators import Comm, SideChannel, worker_ranks
from mpisim.comm.debug import DebugStar
from mpisim.comm.job import require_consistent
from mpisim.comm.star import Star
from mpisim.core.errors import InputError, needs_a_number
from mpisim.core.numerics import kernel_cache, processor
from mpisim.core.protocols import Round
from mpisim.core.registry import table_of
from mpisim.core.rng import Streams
from mpisim.core.schema import flat, share_of
from mpisim.core.terminal import report_once
from mpisim.problems.base import Problem
from mpisim.runs import careful
from mpisim.runs.experiment import Experiment
from mpisim.runs.identity import executed_by, must_agree
from mpisim.runs.log.schema import Column, columns
from mpisim.runs.minimiser import minimiser
from mpisim.runs.run_state import RunState
from mpisim.theory.setting import Condition, Setting, Step, setting_of
from mpisim.theory.smoothness import Bound, Constants, constants


class Setup:
    """An experiment's objects, bound to the ranks of ``comm``. The constructor is collective.

    The experiment's own objects are specs and do not change. Successive set-ups that share a
    ``cache`` load equal problems once.

    Attributes
    ----------
    star, problem, oracle, compressor, estimator : bound objects
    state : RunState
        Of the run, before round 0 until the loop runs.
    rows : array, shape (n,)
        Samples of each worker.
    workers : dict
        What the log has of each worker's samples: arrays (n,) by name.
    step : Step
        Step size and where it comes from.
    run : Run
        The experiment's ``[run]`` table, with how often rows are logged.
    reference : tuple or None
        x* and f(x*), with ``run.reference``.
    """

    def __init__(self, experiment: Experiment, comm: Comm, cache: ProblemCache | None = None):
        kernel_cache.defer_blas_check()
        self.experiment, settings, layout = experiment, experiment.run, experiment.run.layout
        n = experiment.problem.workers or worker_ranks(comm.size, layout)
        self.cache = cache or ProblemCache()
        started, blocks = Clock(), SideChannel(comm, n, layout)
        self.problem = self.cache.problem(experiment, blocks)
        self.round, precision = Round(settings.rounds), settings.precision
        self.problem.attach_round(self.round)
        streams, arrays = Streams(settings.seed), self.problem.arrays
        self.clock = started if arrays.wait is None else WaitingClock(arrays.wait)
        rules = experiment.server, experiment.attack, experiment.fleet
        parts = streams, precision, self.clock, self.round, arrays
        kind = DebugStar if settings.debug else Star
        self.star = star = kind(comm, n, layout, *parts, *rules)
        # before the first exchange whose size depends on the experiment
        code = {n: v for n, v in self.execution.items() if n.startswith("module ")}
        facts = flat(experiment.table) | {"data": self.problem.identity} | code
        require_consistent(star.side, facts)
        self.rows = star.all_workers(self.problem.rows)
        shares = self.problem.label_shares()
        self.workers = {"rows": self.rows}
        if star.attack is not None:
            self.workers["bad"] = star.attack.bad(n).astype(np.int64)
        if shares is not None:
            of_labels = enumerate(star.all_workers(shares).T)
            self.workers |= {f"label_{c}_share": share for c, share in of_labels}
        self.compressor = experiment.compressor.bind(self.problem.d, n, precision)
        if not (self.problem.portable and self.compressor.portable):
            require_consistent(star.side, processor.facts())
        self.compressor.prepare(star, self.problem)
        self.compressor.seal()
        star.end_round()  # the set-up exchange is a round of its own, before round 0
        self.state = self.new_state(star)
        self.oracle, self.estimator = self.state.oracle, self.state.estimator
        self.step, self.run = self._step(), self.state.run
        require_consistent(star.side, {"the step size": repr(float(self.step.gamma))})
        self._warn_of_bias()
        self._warn_of_shares()
        self.reference = self.cache.minimiser(star) if settings.reference else None
        starts = {"schedule.at": experiment.method.schedule.starts(settings.rounds)}
        optimizer = self.state.optimizer
        self._parameters = optimizer.of_rounds() | self.estimator.parameters() | starts

    def _warn_of_shares(self) -> None:
        """A line where a trimmed mean leaves nothing out, or nobody attacks."""
        server, attack, n = self.star.server, self.star.attack, self.star.n
        if attack is not None and attack.share > 0 and not attack.bad(n).any():
            report_once(
                f"mpisim: attack.share: {attack.share:g} of {n} workers is less than one: all are"
                " honest"
            )
        count = ceil(n / server.buckets)
        if server.aggregate == "trimmed-mean" and not share_of(server.trim, count):
            report_once(
                f"mpisim: server.trim: {server.trim:g} of {count} values is less than one: the"
                " trimmed mean leaves none out, and is the mean"
            )

    def _warn_of_bias(self) -> None:
        """A line where a biased compressor meets a method whose proofs need an unbiased one."""
        if self.estimator.unbiased and self.compressor.shift_omega is None:
            report_once(
                f"mpisim: compressor.name: {self.compressor.name!r} is biased, and"
                f" {self.experiment.method.name!r} is proved for unbiased compressors only: no step"
                " is known to be safe; ef21 takes biased ones"
            )

    def new_state(self, star: Star) -> RunState:
        """The state before round 0, on a star of the same ranks."""
        parts = star, self.round, self.problem, self.compressor, self.rows
        return RunState(self.experiment, *parts)

    @cached_property
    def schema(self) -> list[Column]:
        """The columns of the log."""
        metrics = self.state.metrics
        first, known = columns(self.reference is not None), set[str]()
        for part in (first, *(one.columns for one in metrics if not careful.is_plugin(one))):
            known |= {name for name, *_ in part}
        for metric in filter(careful.is_plugin, metrics):
            careful.require_columns(metric, known)
        return first + [column for metric in metrics for column in metric.columns]

    @cached_property
    def identity(self) -> dict[str, str]:
        """What a checkpoint must agree on, by name; see `mpisim.runs.identity`."""
        facts = {"problem identity": self.problem.identity, "workers": str(self.star.n)}
        facts |= must_agree(flat(self.experiment.table))
        facts |= flat({"method": {name.rstrip("_"): v for name, v in self._parameters.items()}})
        return facts | {"step size": repr(float(self.step.gamma))} | self.execution

    @cached_property
    def execution(self) -> dict[str, str]:
        """What executes the experiment, by name; see `mpisim.runs.identity`."""
        return executed_by(self.experiment)

    def setting(self, condition: Condition = "nonconvex") -> Setting:
        """The theorems' view of this experiment. Collective.

        `InputError` if the problem's smoothness constants are not known.
        """
        bound = self.experiment.method.smoothness
        constants = self.cache.constants(self.star, bound)
        return setting_of(constants, self.problem, self.compressor, self.star, bound, condition)

    def _step(self) -> Step:
        method = self.experiment.method
        multiple = method.multiple()
        if multiple is None:
            return Step(float(method.stepsize), "given")  # type: ignore[arg-type]
        require_theorems(self.star)
        method.require_plain_step()
        if not method.optimizer.theorem:
            raise needs_a_number(f"there is no theorem for {method.optimizer.name!r}")
        step = careful.theory_step(self.estimator, self.setting(method.condition()))
        source = step.source if multiple == 1 else f"{multiple:g} x {step.source}"
        return dataclasses.replace(step, gamma=multiple * step.gamma, source=source)


def require_theorems(star: Star) -> None:
    """`InputError` where no theorem is about what the server gets and makes of it."""
    if star.simulated:
        raise InputError('method.stepsize: "theory" is not allowed with fleet.simulate')
    if star.attack is not None or star.server.robust:
        raise InputError(
            "method.stepsize: theorems are about the mean of honest workers;"
            ' "theory" is not allowed with [attack], or with another rule in [server]'
        )


class ProblemCache:
    """The last problem loaded on this rank; a run with an equal problem reuses it.

    Problems are equal if their ``[problem]`` tables, workers, blocks, arithmetic and, if it matters
    to the problem, seeds are equal. Methods that take a ``star`` are collective when they compute,
    so all ranks must call them in the same order.
    """

    def __init__(self) -> None:
        self._key: tuple[Any, ...] | None = None
        self._problem: Problem | None = None
        self._constants: dict[Bound, Constants] = {}
        self._minimiser: tuple[np.ndarray, float] | None = None

    def problem(self, experiment: Experiment, blocks: SideChannel) -> Problem:
        """The experiment's problem, loaded for this rank's workers; `InputError` as `load` says."""
        # all starts, not this rank's block alone: ranks that keep a problem must all keep it, or
        # some would skip an exchange that others make
        key = (*problem_key(experiment), blocks.rank, *blocks.starts.tolist())
        if self._problem is None or key != self._key:
            self._problem = self._minimiser = None  # free the memory first
            self._constants = {}
            block, run = (blocks.n, blocks.first, blocks.m), experiment.run
            self._problem = experiment.problem.loaded(*block, run.seed, run.precision.arithmetic)
            self._key = key
        return self._problem

    def constants(self, star: Star, bound: Bound = "sharp") -> Constants:
        """The smoothness constants of the problem; `InputError` if none are known."""
        assert self._problem is not None
        if bound not in self._constants:
            self._constants[bound] = constants(self._problem, star, bound)
        return self._constants[bound]

    def minimiser(self, star: Star) -> tuple[np.ndarray, float]:
        """x* and f(x*); `InputError` if the problem is not convex."""
        assert self._problem is not None
        if self._minimiser is None:
            self._minimiser = minimiser(self._problem, star)
        return self._minimiser


def problem_key(experiment: Experiment) -> tuple[Any, ...]:
    """Equal for experiments whose problems are the same on the same ranks."""
    seed = experiment.run.seed if experiment.problem.seeded else None
    return repr(table_of(experiment.problem)), experiment.run.dtype, seed
