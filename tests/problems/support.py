"""Problems on hand-made rows, and star networks without MPI."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp

from mpisim.problems import PROBLEMS
from mpisim.problems.data.prepared import Shards
from tests.comm.jobs import HANG_SECONDS

NAMES = ("logistic", "nonconvex-loss", "logistic-nonconvex-reg", "least-squares")
MULTINOMIAL, C = "multinomial-logistic", 4  # with so many classes
FORMS = ("ones", "sparse", "dense")
SMALL = {  # the keys of every problem, where it need not be large; a new one adds a row
    "quadratic": {"dimension": 12, "noise": 0.3, "lambda": 0.01},
    "autoencoder": {"data": "sample", "images": 40, "code_size": 2},
    "logistic": {"data": "sample", "l2": 0.01},
    "nonconvex-loss": {"data": "sample"},
    "logistic-nonconvex-reg": {"data": "sample"},
    "least-squares": {"data": "sample"},
    "multinomial-logistic": {"data": "sample", "l2": 0.01},
    "torch": {"data": "generated", "samples": 40, "model": "linear", "device": "cpu"},
}
RANGES = [(0, 100), (100, 101), (101, 390), (390, 391), (391, 650), (650, 700)]  # of `make_rows`


def make_rows(form: str, count: int = 700, d: int = 23, seed: int = 0):
    """Random rows (count, d) with empty ones among them, and labels -1 / +1."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(count, d))
    if form != "dense":
        a *= rng.random((count, d)) < rng.random((count, 1)) * 0.5
    if form == "ones":
        a = (a != 0).astype(float)
    return a, rng.choice([-1.0, 1.0], count)


def attach(name, a, y, ranges, n=None, first=0, dtype=np.float64, dense=False, **keys):
    """A problem whose workers have the rows given by ``ranges``, a list of (start, stop)."""
    csr, classes = sp.csr_matrix(a), [np.arange(C)] if name == MULTINOMIAL else []
    starts, stops = np.array(ranges, np.int64).reshape(-1, 2).T
    shards = Shards(
        csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64), np.asarray(y, float),
        a.shape[1], starts, stops, "made", "0" * 64, *classes,
    )  # fmt: skip
    problem = PROBLEMS[name](data="made", **keys)
    problem.seed = 0
    problem.attach(shards, n or len(ranges), first, np.dtype(dtype), dense)
    return problem


def made(name, form, ranges=RANGES, d=23, **keys):
    """Rows, their labels (0, ..., C - 1 where there are classes), and a problem on them."""
    a, y = make_rows(form, d=d)
    if name == MULTINOMIAL:
        y = np.random.default_rng(3).integers(0, C, len(a)).astype(float)
    return a, y, attach(name, a, y, ranges, dense=form == "dense", **keys)


def part(name, a, y, ranges, first, count, **keys):
    """Workers first, ..., first + count - 1 of `attach`, with their own rows only."""
    block = ranges[first : first + count]
    low = min((start for start, _ in block), default=0)
    high = max((stop for _, stop in block), default=0)
    shifted = [(start - low, stop - low) for start, stop in block]
    return attach(name, a[low:high], y[low:high], shifted, n=len(ranges), first=first, **keys)


def constants_of(h: np.ndarray) -> tuple[np.ndarray, float, float, float]:
    """L_i, L, L_+ and L_± of quadratic f_i with the Hessians h (m, d, d): Theorem 3, Example 3."""
    mean, square = h.mean(axis=0), np.mean(h @ h, axis=0)
    L, plus, pm = (np.linalg.norm(one, 2) for one in (mean, square, square - mean @ mean))
    return np.linalg.norm(h, 2, axis=(1, 2)), L, np.sqrt(plus), np.sqrt(pm)


class LocalStar:
    """One rank that has all workers."""

    is_server = True
    first = 0

    def __init__(self, n: int):
        self.n = self.m = n

    def sum_over_workers(self, rows: np.ndarray) -> np.ndarray:
        total = np.zeros(rows.shape[1])
        for row in rows:
            total = total + row
        return total

    def all_workers(self, rows: np.ndarray) -> np.ndarray:
        return rows.copy()


class ThreadStar(LocalStar):
    """One of several ranks that run as threads; exchanges that do not match raise."""

    def __init__(self, rank: int, counts: list[int], table: list, barrier: threading.Barrier):
        super().__init__(sum(counts))
        self.rank, self.m, self.first = rank, counts[rank], sum(counts[:rank])
        self.is_server, self.table, self.barrier = rank == 0, table, barrier

    def all_workers(self, rows: np.ndarray) -> np.ndarray:
        self.table[self.rank] = rows
        self.barrier.wait(HANG_SECONDS)
        full = np.concatenate(self.table)
        self.barrier.wait(HANG_SECONDS)
        return full

    def sum_over_workers(self, rows: np.ndarray) -> np.ndarray:
        return super().sum_over_workers(self.all_workers(rows))


def on_ranks(counts: list[int], body) -> list:
    """body(star) on ranks that have ``counts`` workers; their results, by rank."""
    table: list = [None] * len(counts)
    barrier = threading.Barrier(len(counts))

    def run(rank: int):
        try:
            return body(ThreadStar(rank, counts, table, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(len(counts)) as pool:
        return list(pool.map(run, range(len(counts))))
