"""The rows of a block of workers, laid out for the kernels."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from mpisim.problems import kernels
from mpisim.problems.batch_kernels import batch_changes, batch_ids
from mpisim.problems.data.shards import Shards

STRANGER = "a batch names a row that its worker does not have"
DENSE_FROM = 1 / 3  # from this share of non-zeros on, dense rows are faster than sparse ones


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows a_t of m workers; worker i has rows starts[i] to stops[i] - 1, which may overlap.

    Attributes
    ----------
    form : int
        `kernels.ONES`, `kernels.SPARSE` or `kernels.DENSE`.
    store : (indptr, indices, data, dense)
        uint64 (rows + 1,), uint32 (nnz,), (nnz,), (rows, d); those not in use are empty.
    labels : array, shape (rows,), float64
    starts, stops : arrays, shape (m,), int64
    ids, bounds : arrays
        The order in which each worker's rows are visited, as in `kernels.sweep`.
    d : int
    """

    form: int
    store: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    labels: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    ids: np.ndarray
    bounds: np.ndarray
    d: int

    @property
    def m(self) -> int:
        """Workers of the block."""
        return len(self.starts)

    @property
    def dtype(self) -> np.dtype:
        """Of the entries."""
        return self.store[2].dtype

    @cached_property
    def counts(self) -> np.ndarray:
        """Rows of each worker, shape (m,), int64."""
        return self.stops - self.starts

    @cached_property
    def one_copy(self) -> bool:
        """All workers of the block have the same rows: what is computed for one holds for all."""
        same = (self.starts == self.starts[:1]) & (self.stops == self.stops[:1])
        return self.m > 1 and bool(same.all())

    def sweep(
        self, kind: int, want: int, xs: np.ndarray, scale: np.ndarray, shift: np.ndarray, **other
    ):
        """`kernels.sweep` over all rows: (losses (m,), gradients (m, d), dots (rows,)).

        ``xs`` (1, d) or (m, d), ``scale`` (m,), ``shift`` (d,); ``other``: ``labels`` (rows,).
        """
        if self.one_copy and len(xs) == 1:
            one = self.worker(0).sweep(kind, want, xs, scale[:1], shift, **other)
            return np.repeat(one[0], self.m), np.repeat(one[1], self.m, axis=0), one[2]
        if self.one_copy:
            parts = [
                self.worker(i).sweep(kind, want, xs[i : i + 1], scale[i : i + 1], shift, **other)
                for i in range(self.m)
            ]
            losses, gradients, dots = zip(*parts, strict=True)
            return np.concatenate(losses), np.concatenate(gradients), dots[0]
        return self._sweep(kind, want, self.ids, self.bounds, xs, scale, shift, **other)

    def sweep_batch(
        self, kind: int, xs: np.ndarray, batch: np.ndarray, scale: np.ndarray, shift: np.ndarray
    ) -> np.ndarray:
        """Gradients (m, d) over the rows that ``batch`` (m, b) names within each worker's own."""
        batch = np.ascontiguousarray(batch, np.int64)
        ids = np.empty(batch.size, np.uint64)
        if not batch_ids(batch, self.starts, self.stops, ids):
            raise IndexError(STRANGER)
        bounds = np.arange(self.m + 1) * batch.shape[1]
        return self._sweep(kind, kernels.GRADIENT, ids, bounds, xs, scale, shift)[1]

    def batch_changes(
        self,
        kind: int,
        x: np.ndarray,
        y: np.ndarray,
        batch: np.ndarray,
        scale: np.ndarray,
        shift: np.ndarray,
    ) -> np.ndarray:
        """Gradients at x minus those at y, both (d,), over the rows of ``batch``; shape (m, d)."""
        batch, out = np.ascontiguousarray(batch, np.int64), np.empty((self.m, self.d), self.dtype)
        if not batch_changes(
            self.form, kind, batch, self.starts, self.stops, self.store, self.labels,
            x, y, scale, shift, out,
        ):  # fmt: skip
            raise IndexError(STRANGER)
        return out

    def _sweep(self, kind, want, ids, bounds, xs, scale, shift, labels=None):
        m = len(bounds) - 1
        losses = np.empty(m if want & kernels.LOSS else 0)
        gradients = np.empty((m if want & kernels.GRADIENT else 0, self.d), self.dtype)
        dots = np.empty(len(self.labels) if want & kernels.DOTS else 0)
        kernels.sweep(
            self.form, kind, want, ids, bounds, self.store,
            self.labels if labels is None else labels, xs, scale, shift, losses, gradients, dots,
        )  # fmt: skip
        return losses, gradients, dots

    def worker(self, i: int) -> Rows:
        """Worker i alone, on the same storage."""
        starts, stops = self.starts[i : i + 1], self.stops[i : i + 1]
        if self.one_copy:
            ids, bounds = self.ids, self.bounds
        else:
            ids = self.ids[self.bounds[i] : self.bounds[i + 1]]
            bounds = np.array([0, len(ids)])
        return dataclasses.replace(self, starts=starts, stops=stops, ids=ids, bounds=bounds)

    def gram(self, i: int, weights: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Rows start to stop - 1 of sum_t weights_t a_t a_t^T over worker i, (stop - start, d)."""
        indptr, indices, data, dense = self.store
        own = slice(self.starts[i], self.stops[i])
        if self.form == kernels.DENSE:
            a = dense[own]
            return (a[:, start:stop] * weights[own, None]).T @ a
        out = np.zeros((stop - start, self.d))
        ids = np.arange(own.start, own.stop).astype(np.uint64)
        kernels.gram_rows(ids, indptr, indices, data, weights, start, stop, out)
        return out

    def dense_rows(self, i: int) -> np.ndarray:
        """Worker i's rows, shape (counts[i], d), dense."""
        indptr, indices, data, dense = self.store
        start, stop = int(self.starts[i]), int(self.stops[i])
        if self.form == kernels.DENSE:
            return dense[start:stop]
        lengths = _lengths(indptr[start : stop + 1])
        entries = slice(int(indptr[start]), int(indptr[stop]))
        out = np.zeros((stop - start, self.d), self.dtype)
        values = 1.0 if self.form == kernels.ONES else data[entries]
        out[np.repeat(np.arange(stop - start), lengths), indices[entries]] = values
        return out

    def norms_sq(self) -> np.ndarray:
        """|a_t|^2 of all rows, shape (rows,), float64."""
        indptr, _, data, dense = self.store
        if self.form == kernels.DENSE:
            return np.einsum("ij,ij->i", dense, dense)
        if self.form == kernels.ONES:
            return _lengths(indptr).astype(np.float64)
        lengths = _lengths(indptr)
        row = np.repeat(np.arange(len(lengths)), lengths)
        return np.bincount(row, data.astype(np.float64) ** 2, len(lengths))


def _lengths(indptr: np.ndarray) -> np.ndarray:
    pointers = indptr.astype(np.int64)
    return pointers[1:] - pointers[:-1]


def lay_out(shards: Shards, dtype: np.dtype, dense: bool) -> Rows:
    """Shards as `Rows`; ``dense`` must not depend on the block: the last bits differ."""
    indptr = shards.indptr.astype(np.uint64)
    indices = shards.indices.astype(np.uint32)
    data = shards.data.astype(dtype)
    matrix = np.empty((0, shards.d), dtype)
    if dense:
        form = kernels.DENSE
        matrix = np.zeros((len(shards.labels), shards.d), dtype)
        rows = np.repeat(np.arange(len(shards.labels)), np.diff(shards.indptr))
        matrix[rows, shards.indices] = data
        indptr, indices, data = np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0, dtype)
    elif np.all(data == 1):
        form, data = kernels.ONES, np.empty(0, dtype)
    else:
        form = kernels.SPARSE
    starts, stops = shards.starts.astype(np.int64), shards.stops.astype(np.int64)
    ids, bounds = _order(starts, stops, None if dense else np.diff(shards.indptr))
    labels = shards.labels.astype(np.float64)
    return Rows(form, (indptr, indices, data, matrix), labels, starts, stops, ids, bounds, shards.d)


def _order(starts: np.ndarray, stops: np.ndarray, lengths: np.ndarray | None):
    """Visit the rows of each chunk from the shortest to the longest: far fewer mispredicted
    branches at the ends of rows, and it depends on the worker's own rows alone."""
    if len(starts) and (starts == starts[0]).all() and (stops == stops[0]).all():
        starts, stops = starts[:1], stops[:1]  # see Rows.one_copy
    parts = [np.empty(0, np.int64)]
    for start, stop in zip(starts, stops, strict=True):
        own = np.arange(stop - start)
        if lengths is not None:
            own = own[np.lexsort((lengths[start:stop], own // kernels.CHUNK))]
        parts.append(start + own)
    bounds = np.concatenate([[0], np.cumsum(stops - starts)])
    return np.concatenate(parts).astype(np.uint64), bounds.astype(np.int64)
