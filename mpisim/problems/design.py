"""The design matrix of a block of workers, laid out for the compiled loops."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from mpisim.core.numerics.eigen import triangle_size
from mpisim.core.numerics.sums import add_gram, chosen_rows, squared_norms
from mpisim.problems import row_kernels, sweeps
from mpisim.problems.data.arrange import row_numbers, stretches
from mpisim.problems.data.prepared import Shards
from mpisim.problems.loss_kernels import DOTS, GRADIENT, LOSS, SOFTMAX
from mpisim.problems.row_kernels import DENSE, ONES, SPARSE

NO_SUCH_ROW = "a batch names a row that its worker does not have"
ALL = slice(None)  # workers of a block
DENSE_FROM = 1 / 3  # from this share of non-zeros on, dense rows are faster than sparse ones


@dataclasses.dataclass(frozen=True)
class DesignMatrix:
    """Rows a_t of m workers; worker i has rows starts[i] to stops[i] - 1, which may overlap.

    form : `row_kernels.ONES`, `row_kernels.SPARSE` or `row_kernels.DENSE`
    store : (indptr, indices, data, dense), uint64 (rows + 1,), uint32 (nnz,), (nnz,), (rows, d);
        those not in use are empty
    labels : shape (rows,), float64
    starts, stops : shape (m,), int64
    ids, bounds : the order in which each worker's rows are visited, as in `row_kernels.sweep`
    copies : of the workers, for an ensemble: see `repeated`
    classes : C, where a point has a row of d coordinates for each of C classes, else 1
    """

    form: int
    store: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    labels: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    ids: np.ndarray
    bounds: np.ndarray
    d: int
    classes: int = 1
    copies: int = 1

    @classmethod
    def of(cls, shards: Shards, dtype: np.dtype, dense: bool) -> DesignMatrix:
        """The rows of ``shards``; ``dense`` changes the last bits, so all ranks need the same."""
        indptr = shards.indptr.astype(np.uint64)
        indices = shards.indices.astype(np.uint32)
        data = shards.data.astype(dtype)
        matrix = np.empty((0, shards.features), dtype)
        if dense:
            form = DENSE
            matrix = np.zeros((len(shards.labels), shards.features), dtype)
            matrix[row_numbers(shards), shards.indices] = data
            indptr, indices, data = (np.empty(0, a.dtype) for a in (indptr, indices, data))
        elif np.all(data == 1):
            form, data = ONES, np.empty(0, dtype)
        else:
            form = SPARSE
        starts, stops = shards.starts.astype(np.int64), shards.stops.astype(np.int64)
        ids, bounds = _order(starts, stops, None if dense else np.diff(shards.indptr))
        labels = shards.labels.astype(np.float64)
        classes = 1 if shards.classes is None else len(shards.classes)
        return cls(form, (indptr, indices, data, matrix), labels, starts, stops, ids, bounds,
                   shards.features, classes)  # fmt: skip

    @property
    def m(self) -> int:
        """Workers of the block."""
        return len(self.starts)

    @cached_property
    def dtype(self) -> np.dtype:
        """Type of the entries."""
        return self.store[2].dtype

    @cached_property
    def counts(self) -> np.ndarray:
        """Rows of each worker, shape (m,), int64."""
        return self.stops - self.starts

    @cached_property
    def one_copy(self) -> bool:
        """All workers of the block have the same rows, so a result for one holds for all."""
        return self.m > 1 and _all_equal(self.starts, self.stops)

    def sweep(
        self,
        kind: int,
        want: int,
        xs: np.ndarray,
        scale: np.ndarray,
        shift: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        ys: np.ndarray | None = None,
        rows: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(losses (m,), gradients (m, d), dots (rows,)) of `row_kernels.sweep` or `sweeps`.

        ``xs`` and ``shift`` (1, d) or (m, d), ``shift`` by default 0, ``scale`` (m,); ``labels``
        (rows,), by default those of the data; ``rows``: ids and bounds, by default all.
        """
        if shift is None:
            shift = np.zeros((1, self.classes * self.d))
        shift = shift.astype(self.dtype, copy=False)
        if rows is None and self.one_copy:
            return self._once(kind, want, xs, scale, shift, labels)
        ids, bounds = rows or (self.ids, self.bounds)
        m = len(bounds) - 1
        losses = np.empty(m if want & LOSS else 0)
        gradients = np.empty((m if want & GRADIENT else 0, self.classes * self.d), self.dtype)
        dots = np.empty(len(self.labels) if want & DOTS else 0)
        if self.copies > 1 and self.form != DENSE and rows is None and not want & DOTS:
            bounds = bounds[: m // self.copies + 1]
            sweeps.sweep_runs(
                self.form, kind, want, ids, bounds, self.store, self.labels, xs, scale, shift,
                losses, gradients,
            )  # fmt: skip
            return losses, gradients, dots
        if self.copies > 1:
            xs, shift, ys = (self._of_workers(points) for points in (xs, shift, ys))
        kernel, what = row_kernels.sweep, kind
        if kind == SOFTMAX:
            kernel, what = sweeps.sweep_classes, self.classes
        kernel(
            self.form, what, want, ids, bounds, self.store,
            self.labels if labels is None else labels, xs, xs[:0] if ys is None else ys,
            scale, shift, losses, gradients, dots,
        )  # fmt: skip
        return losses, gradients, dots

    def _of_workers(self, points: Any) -> Any:
        """Those of the runs of an ensemble, (copies, d), for each worker; others as they are."""
        if points is None or len(points) != self.copies:
            return points
        return np.repeat(points, self.m // self.copies, axis=0)

    def _once(self, kind, want, xs, scale, shift, labels):
        """`sweep` where all workers have the same rows, and the points are one or theirs."""
        parts = [
            self.sweep(
                kind, want, xs[i : i + 1], scale[i : i + 1],
                shift[i : i + 1] if len(shift) > 1 else shift, labels, rows=(self.ids, self.bounds),
            )
            for i in range(len(xs))
        ]  # fmt: skip
        losses, gradients, dots = zip(*parts, strict=True)
        copies = self.m // len(xs)
        return (
            np.repeat(np.concatenate(losses), copies),
            np.repeat(np.concatenate(gradients), copies, axis=0),
            dots[0],
        )

    def batch_rows(
        self, batch: np.ndarray, members: np.ndarray | slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """`ids` and `bounds` of the rows that ``batch`` (members, b) names within each's own."""
        batch = np.ascontiguousarray(batch, np.int64)
        ids = np.empty(batch.size, np.uint64)
        if not row_kernels.batch_ids(batch, self.starts[members], self.stops[members], ids):
            raise IndexError(NO_SUCH_ROW)
        return ids, np.arange(len(batch) + 1) * batch.shape[1]

    def count(self, rows: np.ndarray) -> np.ndarray:
        """How many of each worker's rows are in the mask ``rows`` (rows,), shape (m,)."""
        total = np.concatenate([[0], np.cumsum(rows)])
        return total[self.stops] - total[self.starts]

    def rows_of(self, workers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`ids` and `bounds` of some workers of the block, whose rows are not all the same."""
        bounds, ids = chosen_rows(self.bounds, self.ids, workers)
        return ids, bounds

    def subset(self, workers: np.ndarray) -> DesignMatrix:
        """The design matrix of some workers of the block, on the same storage."""
        starts, stops = self.starts[workers], self.stops[workers]
        if self.one_copy and len(workers) > 0:
            ids, bounds = self.ids, self.bounds
        else:
            visited = workers[:1] if _all_equal(starts, stops) else workers
            ids, bounds = self.rows_of(visited)
        return dataclasses.replace(self, starts=starts, stops=stops, ids=ids, bounds=bounds)

    def repeated(self, copies: int) -> DesignMatrix:
        """The design matrix of an ensemble, whose runs all have these workers."""
        workers = np.tile(np.arange(self.m), copies)
        return dataclasses.replace(self.subset(workers), copies=copies)

    def gram(self, i: int, weights: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Rows start to stop - 1 of sum_t weights_t a_t a_t^T over worker i, (stop - start, d)."""
        indptr, indices, data, dense = self.store
        rows = slice(self.starts[i], self.stops[i])
        out = np.zeros((stop - start, self.d))
        if self.form == DENSE:
            add_gram(dense[rows].astype(np.float64), weights[rows], start, out)
            return out
        ids = np.arange(rows.start, rows.stop).astype(np.uint64)
        row_kernels.gram_rows(ids, indptr, indices, data, weights, start, stop, out)
        return out

    def gram_triangles(self, weights: np.ndarray, scale: np.ndarray, shared: float) -> np.ndarray:
        """scale_i sum_t weights_t a_t a_t^T + shared I of each worker, as triangles (m, D)."""
        ids, bounds = stretches(self.starts, self.counts)
        rows, out = ids.astype(np.uint64), np.empty((self.m, triangle_size(self.d)))
        row_kernels.gram_triangles(
            self.form, rows, bounds, self.store, self.d, weights, scale, shared, out
        )
        return out

    def entries(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What sparse rows start to stop - 1 store: row from ``start`` on, column, value."""
        indptr, indices, data, _ = self.store
        ends = indptr[start : stop + 1].astype(np.int64)
        stored = slice(ends[0], ends[-1])
        columns = indices[stored]
        values = np.ones(len(columns)) if self.form == ONES else data[stored].astype(np.float64)
        return np.repeat(np.arange(stop - start), np.diff(ends)), columns, values

    def squares(self, weights: np.ndarray) -> np.ndarray:
        """sum_t weights_t a_tj^2 over each worker's rows, shape (m, d), float64."""
        out = np.empty((self.m, self.d))
        for i, (start, stop) in enumerate(zip(self.starts, self.stops, strict=True)):
            if self.form == DENSE:
                dense = self.store[3][start:stop].astype(np.float64)
                out[i] = np.einsum("t,tj->j", weights[start:stop], dense**2)
            else:
                rows, columns, values = self.entries(start, stop)
                out[i] = np.bincount(columns, weights[start:stop][rows] * values**2, self.d)
        return out

    def dense_rows(self, i: int) -> np.ndarray:
        """Worker i's rows, shape (counts[i], d), dense."""
        start, stop = self.starts[i], self.stops[i]
        if self.form == DENSE:
            return self.store[3][start:stop]
        rows, columns, values = self.entries(start, stop)
        out = np.zeros((stop - start, self.d), self.dtype)
        out[rows, columns] = values
        return out

    def largest_norms_sq(self) -> np.ndarray:
        """max_t |a_t|^2 over each worker's rows, shape (m,), float64; 0 for a worker without."""
        if self.form == DENSE:
            norms = squared_norms(self.store[3]).astype(np.float64)
        else:
            rows, _, values = self.entries(0, len(self.labels))
            norms = np.bincount(rows, values**2, len(self.labels))
        pairs = zip(self.starts, self.stops, strict=True)
        return np.array([norms[start:stop].max(initial=0.0) for start, stop in pairs])


def _all_equal(starts: np.ndarray, stops: np.ndarray) -> bool:
    return bool(((starts == starts[:1]) & (stops == stops[:1])).all())


def _order(starts: np.ndarray, stops: np.ndarray, lengths: np.ndarray | None):
    """Visit the rows of each chunk from the shortest to the longest.

    The processor then mispredicts far fewer ends of rows. The order depends only on the worker's
    own rows.
    """
    if _all_equal(starts, stops):
        starts, stops = starts[:1], stops[:1]  # see DesignMatrix.one_copy
    ids, bounds = stretches(starts, stops - starts)
    if lengths is not None:
        for a, b in pairwise(bounds.tolist()):
            chunk, rows = np.arange(b - a) // row_kernels.CHUNK, ids[a:b]
            ids[a:b] = rows[np.lexsort((lengths[rows], chunk))]
    return ids.astype(np.uint64), bounds
