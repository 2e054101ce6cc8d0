"""The columns that ``run.columns`` may name: of messages, estimates and the last step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numba import njit

from mpisim.comm.network import Upload
from mpisim.core.arrays import to_host
from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import LazyRows, row_blocks
from mpisim.core.numerics.lanes import dot, sum_of
from mpisim.core.numerics.sums import squared_norms
from mpisim.core.state import AtServer, PerWorker, Shared
from mpisim.methods.optimizers import Moments
from mpisim.problems.explicit import ExplicitProblem
from mpisim.runs.log.schema import OF_METRICS, Column
from mpisim.runs.metrics import Metric, column, metric


def _layer(i: int) -> Column:
    return column(f"layer_{i}_bits", f"sent in round k - 1 for layer {i}", "bit")


@metric("adaptive")
class Adaptive(Metric):
    """(L_+^t)^2 and (L_±^t)^2 of the last step, as the PermK paper's A.8.2 measures them.

    With D_i = grad f_i(x^k) - grad f_i(x^{k-1}): the mean of |D_i|^2 and the mean of
    |D_i - mean D|^2, both over |x^k - x^{k-1}|^2, so that row k has t = k - 1. NaN in row 0, and if
    x did not move. Each logged row computes the gradients at both points.
    """

    columns = OF_METRICS["adaptive"]

    last = Shared("x^{k-1}")

    def check(self) -> None:
        self.last = None

    def passed(self, x: np.ndarray) -> None:
        self.last = x

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        if self.last is None:
            return np.nan, np.nan
        moved = to_host(x - self.last).astype(np.float64)
        length = float(dot(moved, moved))
        change: np.ndarray | LazyRows
        if isinstance(self.problem, ExplicitProblem):
            change = self.problem.lazy_gradients(x) - self.problem.lazy_gradients(self.last)
        else:
            change = to_host(self.problem.gradients(x) - self.problem.gradients(self.last))

        mean = self._mean(change)

        def fold(total: np.ndarray) -> None:
            for _, rows in row_blocks(change):
                _spread(total, rows, mean)

        squares = np.zeros(2)
        self.star.relay(squares, fold)
        squares /= self.star.n
        return tuple((squares / length).tolist()) if length > 0 else (np.nan, np.nan)


@njit(cache=True)
def _spread(total, rows, mean):
    """total[0] += |row|^2, total[1] += |row - mean|^2, row by row."""
    for i in range(rows.shape[0]):
        square = away = 0.0
        for j in range(rows.shape[1]):
            value = np.float64(rows[i, j])
            square += value**2
            away += (value - mean[j]) ** 2
        total[0] += square
        total[1] += away


@metric("estimates")
class Estimates(Metric):
    """Compression errors and the variance v, as in CD-Adam's paper, Section 4 and Lemmas B.5, B.6.

    g is the mean of the workers' gradients before compression, g^ what the server makes of their
    messages, and g~ what all workers decode and step with. Row k has the values of round k - 1. NaN
    where a method does not estimate the gradient in this way (DIANA, MARINA, 1-bit Adam after its
    warm-up), and for v without one.
    """

    columns = OF_METRICS["estimates"]

    g = Shared("the mean gradient of the round in progress")
    errors = AtServer("of its estimates")

    def check(self) -> None:
        self.passed(np.empty(0))

    def passed(self, x: np.ndarray) -> None:
        self.g, self.errors = None, (np.nan, np.nan)

    def fresh(self, g_i: np.ndarray | LazyRows) -> None:
        if self._due():
            self.g = self._mean(to_host(g_i))

    def estimated(self, g_hat: np.ndarray, g: np.ndarray) -> None:
        if self.g is not None and self.star.is_server:
            g_hat, g = to_host(g_hat), to_host(g)
            self.errors = _distance(g_hat, self.g), _distance(g, g_hat)
        self.g = None

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        v = self.optimizer.v if isinstance(self.optimizer, Moments) else np.nan
        v = np.atleast_1d(to_host(v))
        return *self.errors, float(sum_of(v, v.size)) / v.size, float(v.max())


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    away = a.astype(np.float64) - b
    return float(np.sqrt(dot(away, away)))


@metric("denominators")
class Denominators(Metric):
    """How far Adam's coordinates differ in step: the largest denominator over the smallest.

    The step of coordinate j is gamma m_j over its denominator, sqrt(vhat_j + nu) in AMSGrad. With a
    ratio of 1 all coordinates have one step, and the method is heavy ball. NaN in row 0, and for
    optimizers without second moments.
    """

    columns = OF_METRICS["denominators"]

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        if not isinstance(self.optimizer, Moments) or not self.optimizer.t:
            return (np.nan,)
        denominators = to_host(self.optimizer.denominators()).astype(np.float64)
        with np.errstate(divide="ignore"):  # in float32 nu may be 0
            return (float(denominators.max() / denominators.min()),)


@metric("layers")
class Layers(Metric):
    """Payload bits that workers sent for each layer in round k - 1, summed over workers.

    NaN if nothing was compressed in it, or not layer by layer: ``layerwise``, ``scaled-sign`` with
    its key ``layerwise``, and ``rank-k`` do that.
    """

    columns: ClassVar[Sequence[Column]] = [_layer(0)]  # of a run: one for each layer

    bits = PerWorker("of each layer, (m, layers), once something was compressed")

    def check(self) -> None:
        self.count = len(self.problem.layers)
        self.columns = tuple(map(_layer, range(self.count)))  # type: ignore[misc]
        self.bits = None

    def passed(self, x: np.ndarray) -> None:
        self.bits = None

    def up(self, v: np.ndarray | LazyRows, upload: Upload) -> None:
        if not self._due():
            return
        if self.bits is None:
            self.bits = np.zeros((self.star.m, self.count))
        sent = upload.message.layer_bits()
        if sent is None or sent.shape[1] != self.count:
            sent = np.full((1, self.count), np.nan)
        np.add.at(self.bits, upload.draw.members, sent)  # a client drawn twice is there twice

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        nothing = np.full((self.star.m, self.count), np.nan)
        bits = nothing if self.bits is None else self.bits
        return tuple(self.star.sum_over_workers(bits).tolist())


@njit(cache=True)
def _losses(v, decoded):
    """|decoded_i - v_i|^2 / |v_i|^2 of each row, shape (m,), float64."""
    out = np.empty(v.shape[0])
    for i in range(v.shape[0]):
        lost = square = 0.0
        for j in range(v.shape[1]):
            square += np.float64(v[i, j]) ** 2
            lost += (np.float64(decoded[i, j]) - np.float64(v[i, j])) ** 2
        out[i] = lost / square if square > 0 else 0.0
    return out


@njit(cache=True)
def _norms(v, starts):
    """sum_l |v_l| over the parts of v (d,), which begin at ``starts``."""
    total = 0.0
    for part in range(starts.size - 1):
        square = 0.0
        for j in range(starts[part], starts[part + 1]):
            square += np.float64(v[j]) ** 2
        total += np.sqrt(square)
    return total


@metric("pi")
class Pi(Metric):
    """pi of Assumption 4.1 of CD-Adam's paper, measured: |C(v) - v|^2 / |v|^2 (0 for v = 0).

    ``pi_code`` is what the paper's published code prints: 1 - |C(v) - v| / |v| at the server, where
    |v| is the sum over a network's tensors of their norms. Row k has the values of round k - 1; NaN
    if nothing was compressed in it. A sender of several messages counts with the last.
    """

    columns = OF_METRICS["pi"]

    pi_i = PerWorker("of its senders")
    pi = AtServer("of the server's message")
    pi_code = AtServer("of it, by layer")

    def check(self) -> None:
        self.starts = np.concatenate([[0], np.cumsum(self.problem.layers)])
        self.passed(self.starts)

    def passed(self, x: np.ndarray) -> None:
        self.pi_i, self.pi, self.pi_code = np.full(self.star.m, np.nan), np.nan, np.nan

    def up(self, v: np.ndarray | LazyRows, upload: Upload) -> None:
        if self._due():
            rows = v.dense() if isinstance(v, LazyRows) else to_host(v)
            self.pi_i[upload.draw.members] = _losses(rows, to_host(upload.decoded()))

    def down(self, v: np.ndarray, decoded: np.ndarray) -> None:
        if self._due():
            v, decoded = to_host(v), to_host(decoded)
            self.pi = float(_losses(v[None], decoded[None])[0])
            lost, total = _norms(decoded - v, self.starts), _norms(v, self.starts)
            self.pi_code = 1 - (lost / total if total > 0 else 0.0)

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        pi_i = self.star.gather_workers(self.pi_i)
        sent = self.pi_i[:0] if pi_i is None else pi_i[~np.isnan(pi_i)]
        mean, largest = (float(sent.mean()), float(sent.max())) if sent.size else (np.nan,) * 2
        return mean, largest, self.pi, self.pi_code


@metric("points")
class Points(Metric):
    """The points x_i that workers keep between rounds, as they are when x^k is known.

    NaN in row 0, which has none. `InputError` for methods whose workers keep none.
    """

    columns = OF_METRICS["points"]

    def check(self) -> None:
        if not self.estimator.points:
            raise InputError(
                f'run.columns: "points" is not allowed with estimator {self.estimator.name!r},'
                " whose workers keep no points between rounds"
            )

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        x_i = vars(self.estimator).get(self.estimator.points)
        if x_i is None:
            return np.nan, np.nan
        away = to_host(x_i - x).astype(np.float64)
        rows = np.stack([self.problem.losses(x_i), squared_norms(away)], axis=1)
        return tuple((self.star.sum_over_workers(rows) / self.star.n).tolist())


@metric("uniform")
class Uniform(Metric):
    """E |grad f(x^)|^2 at the iterate that theorems return, whatever ``log_every`` is.

    After k rounds x^ is one of x^0, ..., x^{k-1}, each equally likely (MARINA, Algorithm 1, line
    12). So row k has the mean over these, and row 0 has |grad f(x^0)|^2. Each round evaluates the
    gradient once more.
    """

    columns = OF_METRICS["uniform"]

    total = Shared("the sum over the rounds so far")
    rounds = Shared("their number")

    def check(self) -> None:
        self.total, self.rounds = 0.0, 0

    def passed(self, x: np.ndarray) -> None:
        self.total, self.rounds = self.total + self._grad_norm_sq(x), self.rounds + 1

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        return (self.total / self.rounds if self.rounds else self._grad_norm_sq(x),)

    def _grad_norm_sq(self, x: np.ndarray) -> float:
        star = self.star
        if star.attack is not None:  # f is the mean over the others
            good = ~star.attack.bad(star.n)
            rows = to_host(self.problem.losses_and_gradients(x)[1])
            grad = self._mean(rows[good[star.first : star.first + star.m]], int(good.sum()))
        elif isinstance(self.problem, ExplicitProblem):
            grad = self.problem.loss_and_gradient(x)[1]
        else:
            grad = self._mean(to_host(self.problem.losses_and_gradients(x)[1]))
        return float(dot(grad, grad))
