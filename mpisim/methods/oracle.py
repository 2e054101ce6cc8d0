"""The gradients that an estimator asks for: counted, timed, and computed once for a point.

Also those of workers whose labels are flipped, by the attack "label-flip".
"""

from __future__ import annotations

from time import perf_counter
from typing import cast

import numpy as np

from mpisim.comm.clock import COMPUTE, EVALUATE, Clock
from mpisim.problems.base import Problem
from mpisim.problems.explicit import ExplicitProblem, LazyGradients


class Oracle:
    """The problem's gradients over this rank's workers, and their cost.

    ``samples`` is m, the least number of samples of any worker, over all ranks. ``calls`` counts
    the gradients of single samples that estimators asked for, over this rank's workers.
    Evaluation for the log is not charged. If the estimator then asks for the gradients at the same
    point, it gets the evaluated ones, and their time is charged to it.
    """

    def __init__(
        self, problem: Problem, clock: Clock, samples: int, flipped: np.ndarray | None = None
    ):
        """flipped : the workers whose labels are, for estimators, not for the log, (m,), bool"""
        self.problem, self.clock = problem, clock
        self._asked = problem if flipped is None else FlippedLabels(problem, flipped)
        self.samples = samples
        self.calls = 0
        self.credited = 0.0  # seconds of evaluations that were charged to the method
        self.rows = problem.rows
        self.total = int(problem.rows.sum())
        self._x: np.ndarray | None = None
        self._gradients: np.ndarray | None = None
        self._seconds = 0.0

    def restore(self, calls: int) -> None:
        """Go on counting from ``calls``."""
        self.calls = calls

    def gradients(self, x: np.ndarray, clients: np.ndarray | None = None) -> np.ndarray:
        """The full gradients of all f_i of this rank at x, shape (m, d).

        With ``clients`` (numbered within this rank) only theirs, shape (len(clients), d). x has
        shape (d,), or a row with the point of each of them.
        """
        self.calls += self.total if clients is None else int(self.rows[clients].sum())
        self.clock.to(COMPUTE)
        evaluated = clients is None and self._x is x and self._asked is self.problem
        if evaluated and self._gradients is not None:
            self.clock.move(self._seconds, EVALUATE, COMPUTE)
            self.credited += self._seconds
            gradients, self._gradients = self._gradients, None
            return gradients
        return self._asked.gradients(x, members=clients)

    def lazy_gradients(
        self, x: np.ndarray, clients: np.ndarray | None = None
    ) -> np.ndarray | LazyGradients:
        """`gradients`, but computed only where they are needed, if the problem can.

        The result can be subtracted, compressed and sent like an array, at the cost of what the
        compressor keeps. Counted like `gradients`.
        """
        if not self.problem.explicit:
            return self.gradients(x, clients)
        self.calls += self.total if clients is None else int(self.rows[clients].sum())
        self.clock.to(COMPUTE)
        return cast(ExplicitProblem, self.problem).lazy_gradients(x, members=clients)

    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, clients: np.ndarray | None = None
    ) -> np.ndarray:
        """Minibatch gradients, shape (m, d), for row numbers ``batch``, shape (m, b).

        With ``clients`` (numbered within this rank) only theirs, and ``batch`` has their rows.
        """
        self.clock.to(COMPUTE)
        self.calls += batch.size
        return self._asked.batch_gradients(x, batch, members=clients)

    def batch_changes(self, x: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Minibatch gradients at x minus those at y, shape (m, d): two calls for each sample."""
        self.clock.to(COMPUTE)
        self.calls += 2 * batch.size
        return self._asked.batch_changes(x, y, batch)

    def hessians(self, x: np.ndarray, clients: np.ndarray | None = None) -> np.ndarray:
        """The Hessians of all f_i of this rank at x (d,), shape (m, d (d + 1) / 2).

        Each as a vector, see `mpisim.core.numerics.eigen`. Not among the ``calls``. With
        ``clients`` (numbered within this rank) only theirs.
        """
        self.clock.to(COMPUTE)
        return self.problem.hessian_triangles(x, clients)

    def losses(self, x: np.ndarray) -> np.ndarray:
        """f_i(x) of this rank's workers, (m,). Not among the ``calls``."""
        self.clock.to(COMPUTE)
        return self._asked.losses(x)

    def loss_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f(x) and its gradient (d,) for the log, not counted, from an ``explicit`` problem."""
        self.clock.to(EVALUATE)
        return cast(ExplicitProblem, self.problem).loss_and_gradient(x)

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses (m,) and gradients (m, d) for the log, not counted."""
        self.clock.to(EVALUATE)
        start = perf_counter()
        losses, gradients = self.problem.losses_and_gradients(x)
        self._x, self._seconds = x, perf_counter() - start
        self._gradients = None if self.problem.sampled_rows else gradients
        return losses, gradients

    def forget(self) -> None:
        """Discard the last evaluation, so that `gradients` does not reuse it."""
        self._x = self._gradients = None


class FlippedLabels:
    """A problem seen by workers some of which have every label flipped, see `flip_labels`.

    Then f_i is x -> f_i(P x), with the gradient P grad f_i(P x). Its Hessian is that at x, as no
    label changes the Hessian of a GLM.
    """

    def __init__(self, problem: Problem, flipped: np.ndarray):
        """flipped : which of the block's workers, shape (m,), bool"""
        self._problem, self._flipped = problem, flipped[:, None]

    def _flip(self, x: np.ndarray, members: np.ndarray | None = None) -> np.ndarray:
        """P x for those whose labels are flipped, x for the others, (m, d) or (members, d)."""
        flipped = self._flipped if members is None else self._flipped[members]
        return np.where(flipped, self._problem.flip_labels(x), x)

    def losses(self, x: np.ndarray) -> np.ndarray:
        return self._problem.losses(self._flip(x))

    def gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> np.ndarray:
        at = self._flip(x, members)
        return self._flip(self._problem.gradients(at, members=members), members)

    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, *, members: np.ndarray | None = None
    ) -> np.ndarray:
        at = self._flip(x, members)
        return self._flip(self._problem.batch_gradients(at, batch, members=members), members)

    def batch_changes(self, x: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return self._flip(self._problem.batch_changes(self._flip(x), self._flip(y), batch))
