"""Generalized linear models: f_i(x) = mean over its rows of phi(a . x, y), plus a penalty."""

from __future__ import annotations

import dataclasses
from math import inf, nan
from typing import Any, ClassVar, Self

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.machine import available_memory, gigabytes
from mpisim.core.numerics.sums import squared_norms
from mpisim.core.protocols import Matrices
from mpisim.core.schema import require
from mpisim.problems.base import ProblemWithTestSet
from mpisim.problems.data import prepared as data_sets
from mpisim.problems.data.arrange import Remainder, Scale, Split
from mpisim.problems.data.by_label import DRAWN, UNLIKE, SplitKeys, read_client_ids
from mpisim.problems.data.formats import Column
from mpisim.problems.data.prepared import DataOptions, Labels, Shards
from mpisim.problems.design import ALL, DENSE_FROM, DesignMatrix
from mpisim.problems.hessians import WeightedGram, gradient_bounds
from mpisim.problems.loss_kernels import DOTS, GRADIENT, LOSS


@dataclasses.dataclass(eq=False)
class Glm(ProblemWithTestSet, rows_of_points=True):
    """What the models share; a model names its phi and bounds its second derivative.

    Class attributes: ``kind``, the phi of `loss_kernels`; ``curvature``, sup |phi''| over z;
    ``slope``, sup |phi'|; ``labels``.
    """

    data: str
    workers: int | None = None
    split: Split = "contiguous"
    remainder: Remainder = "drop"
    bias: bool = False
    scale: Scale = "none"
    l2: float = 0.0
    any_content: bool | None = None
    alpha: float | None = None
    pieces: int | None = None
    similarity: float | None = None
    client_ids: str | None = None
    label: Column | None = None
    test_: str | None = None

    tested = False  # unless there is a key ``test``
    nonnegative = True  # phi and the penalties of all models are
    kind: ClassVar[int]
    curvature: ClassVar[float]
    slope: ClassVar[float] = inf
    labels: ClassVar[Labels] = "binary"

    def check(self) -> None:
        require(0 <= self.l2 < inf, "problem.l2", self.l2, "finite and at least 0")
        self._split_keys().require(self.split, self.remainder, self.labels != "real")

    def _split_keys(self) -> SplitKeys:
        return SplitKeys(self.alpha, self.pieces, self.similarity, self.client_ids)

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """See `Problem.load`; `InputError` if the data is missing or malformed."""
        keys: dict[str, Any] = {"workers": n, "seed": seed, "split_keys": self._split_keys()}
        names = (field.name for field in dataclasses.fields(DataOptions))
        keys |= {name: getattr(self, name) for name in names if name not in keys}
        prepared, tests = data_sets.prepare(DataOptions(**keys)), None
        C = 1 if prepared.classes is None else len(prepared.classes)
        if prepared.classes is not None and C < 2:
            raise InputError(f"{prepared.source}: 1 distinct label; allowed: two or more classes")
        size, free = 3.0 * np.dtype(dtype).itemsize * prepared.features * C, available_memory()
        if size > free:  # x, a gradient and their sum
            of_classes = f" for {C:,} classes" if C > 1 else ""
            raise InputError(
                f"{prepared.source}: the largest index is {prepared.features:,}: three vectors"
                f"{of_classes} take {gigabytes(size)}, and {gigabytes(free)} are free"
            )
        if self.test_ is not None:
            tests = data_sets.prepare_test(prepared, self.test_)
            features = max(prepared.features, tests.features)
            prepared = dataclasses.replace(prepared, features=features)
            tests = dataclasses.replace(tests, features=features)
        entries = prepared.nnz + self.bias * prepared.rows
        dense = entries >= DENSE_FROM * prepared.rows * prepared.features
        shards = data_sets.load_shards(prepared, first, count)
        self.tested = tests is not None
        self.attach(shards, n, first, dtype, dense)
        if prepared.clients is not None:
            self.identity += f", clients sha256:{prepared.clients.sha256}"
        if tests is not None:
            part = data_sets.load_part(tests, n, first, count)
            if self.labels == "binary":
                part = dataclasses.replace(part, labels=2.0 * part.labels - 1, classes=None)
            self.tests, self.test_design = tests.rows, DesignMatrix.of(part, self.dtype, dense)
            self.identity += f", tested on {part.name} sha256:{part.sha256}"

    def digests(self) -> list[str]:
        names = [name for name in (self.data, self.test_) if name is not None]
        data, *test = (data_sets.sha256_of(name, bool(self.any_content)) for name in names)
        clients = [read_client_ids(self.client_ids).sha256] if self.client_ids else []
        return [data, *clients, *test]

    def attach(self, shards: Shards, n: int, first: int, dtype: np.dtype, dense: bool) -> None:
        """Take the rows of a block that starts at worker ``first`` of ``n``.

        ``dense``: store them as dense rows; the same on all ranks.
        """
        self.design = DesignMatrix.of(shards, np.dtype(dtype), dense)
        self.n, self.first, self.m, self.d = n, first, self.design.m, shards.features
        self.dtype, self.rows = np.dtype(dtype), self.design.counts
        self.identical = n == 1 or self.split == "homogeneous"
        self.identity = f"{self.name} on {shards.name} sha256:{shards.sha256}"
        self._scale = self.weight(self.rows)

    def repeated(self, copies: int) -> Self:
        made = self.thawed()
        made.copies, made.m, made.design = copies, copies * self.m, self.design.repeated(copies)
        made._scale, made.rows = np.tile(self._scale, copies), made.design.counts
        return made

    def weight(self, count: np.ndarray) -> np.ndarray:
        """The factor of the sum over ``count`` rows: 1 / count, unless the model says otherwise."""
        return 1.0 / np.maximum(count, 1)

    def flip_labels(self, x: np.ndarray) -> np.ndarray:
        """-x: phi depends on y a . x or |a . x - y|, and penalties are even."""
        return -x

    def penalty(self, xs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The penalty at the points ``xs`` (k, d), (k,), and its gradients (k, d), all float64."""
        return 0.5 * self.l2 * squared_norms(xs), self.l2 * xs

    @property
    def seeded(self) -> bool:
        return self.split in DRAWN

    def label_shares(self) -> np.ndarray | None:
        """The shares of -1 and +1 among each worker's rows, (m, 2), if workers are unlike."""
        if self.split not in UNLIKE or self.labels == "real":
            return None
        share = self.design.count(self.design.labels > 0) / self.rows
        return np.stack([1 - share, share], axis=1)

    @property
    def shared_curvature(self) -> float:
        """The largest curvature of the penalty, the same for all workers."""
        return self.l2

    @property
    def penalty_slope(self) -> float:
        """The largest coordinate of the penalty's gradient at any x."""
        return inf if self.l2 > 0 else 0.0

    def losses(self, x: np.ndarray) -> np.ndarray:
        return self._evaluate(x, LOSS)[0]

    def gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> np.ndarray:
        return self._evaluate(x, GRADIENT, members)[1]

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._evaluate(x, LOSS | GRADIENT)

    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, *, members: np.ndarray | None = None
    ) -> np.ndarray:
        scale, rows = self._drawn(batch, ALL if members is None else members)
        xs = self._points(x)
        shift = self._penalty_gradients(xs)
        return self.design.sweep(self.kind, GRADIENT, xs, scale, shift, rows=rows)[1]

    def _penalty_gradients(self, xs: np.ndarray) -> np.ndarray:
        return self.penalty(xs.astype(np.float64))[1]

    def batch_changes(self, x: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
        xs, ys, shift = self._points(x), self._points(y), None
        scale, rows = self._drawn(batch, ALL)
        if self.shared_curvature > 0:  # there is a penalty
            shift = self._penalty_gradients(xs) - self._penalty_gradients(ys)
        return self.design.sweep(self.kind, GRADIENT, xs, scale, shift, ys=ys, rows=rows)[1]

    def _drawn(
        self, batch: np.ndarray, members: np.ndarray | slice
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """The factor of the sum over a batch, that over all rows times rows / b; and its rows."""
        scale = self._scale[members] * self.rows[members] / max(batch.shape[1], 1)
        return scale, self.design.batch_rows(batch, members)

    def _points(self, x: np.ndarray) -> np.ndarray:
        """x, shape (d,) or (workers, d), as rows (1, d) or (workers, d) that the kernels take.

        These need contiguous, aligned, writable arrays of the arithmetic's type.
        """
        if x.dtype != self.dtype or not x.flags.carray:
            x = np.require(x, self.dtype, ["C", "A", "W"])
        return x.reshape(-1, self.d)

    def _evaluate(
        self, x: np.ndarray, want: int, members: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        xs = self._points(x)
        values, shift = self.penalty(xs.astype(np.float64))
        design, scale, rows = self.design, self._scale, None
        if members is not None:
            scale = scale[members]
            if design.one_copy:
                design = design.subset(members)
            else:
                rows = design.rows_of(members)
        losses, gradients, _ = design.sweep(self.kind, want, xs, scale, shift, rows=rows)
        if len(values) > 1:  # of a point for each worker, or each run of an ensemble
            values = np.repeat(values, len(scale) // len(values))
        return losses + values if want & LOSS else losses, gradients

    def margins(self, x: np.ndarray) -> np.ndarray:
        """a_t . x for all rows of the block, shape (rows,)."""
        return self.design.sweep(self.kind, DOTS, self._points(x), self._scale)[2]

    def test(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean of phi over the test set, without the penalty; a worker has a part of its rows.

        Accuracies are NaN where labels are real numbers.
        """
        xs, design, scale = self._points(x), self.test_design, np.full(self.m, 1 / self.tests)
        losses, gradients, _ = design.sweep(self.kind, LOSS | GRADIENT, xs, scale)
        right = self._right(self.design, xs) / (self.rows * self.n)
        return np.stack([right, losses, self._right(design, xs) / self.tests], axis=1), gradients

    def _right(self, design: DesignMatrix, xs: np.ndarray) -> np.ndarray:
        """How many of each worker's rows are classified rightly, (m,)."""
        dots = design.sweep(self.kind, DOTS, xs, self._scale)[2]
        right = self.predicted(dots) == design.labels
        return design.count(right) if self.labels != "real" else np.full(self.m, nan)

    def predicted(self, dots: np.ndarray) -> np.ndarray:
        """The labels of rows with a_t . x = ``dots`` (rows,): +1 from 0 on."""
        return np.where(dots >= 0, 1, -1)

    def sample_norms(self) -> np.ndarray:
        """sup |phi''| max_t |a_t|^2 plus the penalty's curvature."""
        scale = self._scale * self.rows
        return self.curvature * scale * self.design.largest_norms_sq() + self.shared_curvature

    def gradient_bounds(self) -> np.ndarray | None:
        if max(self.slope, self.penalty_slope) == inf:
            return None
        scale = self._scale * self.rows
        return gradient_bounds(self.design, scale, self.slope, self.penalty_slope)

    def hessian_triangles(self, x: np.ndarray, members: np.ndarray | None = None) -> np.ndarray:
        matrices: Any = self.hessian(x)
        design, scale = self.design, self._scale
        if members is not None:
            design, scale = design.subset(members), scale[members]
        return design.gram_triangles(matrices.weights, scale, matrices.shared)

    def largest_hessian(self) -> Matrices:
        """M_i = (sup |phi''| / r_i) A_i^T A_i + (the penalty's largest curvature) I."""
        weights = np.full(len(self.design.labels), self.curvature)
        return WeightedGram(self.design, self._scale, weights, self.shared_curvature)
