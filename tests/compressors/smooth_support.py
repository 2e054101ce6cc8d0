"""A problem that is nothing but its smoothness matrices, and compressors prepared with it."""

import dataclasses

import numpy as np
from mpi4py import MPI

from mpisim.comm.clock import Clock
from mpisim.comm.star import Star
from mpisim.compressors import Compressor, make
from mpisim.core.protocols import Round
from mpisim.core.rng import Streams
from tests.compressors.cases import SINGLE

SCHEMES = [
    {"name": "qsgd", "s": 2},
    {"name": "block-quant", "blocks": 2, "s": 1},
    {"name": "block-quant-plus", "blocks": 2, "beta": 12.0},
    {"name": "block-quant-plus", "blocks": 3, "beta": 9.5, "scheme": "dcgd", "steps": "bound"},
    {"name": "quant-plus", "beta": 4.0},
    {"name": "quant-plus", "beta": 4.0, "scheme": "dcgd"},
    {"name": "quant-plus", "beta": 4.0, "steps": "fixed"},
    {"name": "rand-tau", "tau": 2.0},
    {"name": "rand-tau-plus", "tau": 2.0},
    {"name": "rand-tau-plus", "tau": 1.5, "scheme": "dcgd"},
    {"name": "randk", "k": 2},
    {"name": "natural"},
    {"name": "bernoulli", "p": 0.5},
    {"name": "block-quant-plus", "blocks": 2, "beta": 12.0, "norm": "inf"},
]


@dataclasses.dataclass
class Only:
    """L_i (n, d, d), all workers on one rank; ``shared``: the penalty's part."""

    all: np.ndarray
    shared: float = 0.01
    name = "only"
    convex, closed_form = True, None

    @property
    def m(self) -> int:
        return len(self.all)

    @property
    def d(self) -> int:
        return self.all.shape[1]

    def double(self):
        return self

    def largest_hessian(self):
        return self

    def rows(self, i, start, stop):
        return self.all[i, start:stop]


def spd(n: int, d: int, seed: int = 0, rank: int | None = None, shared: float = 0.01) -> np.ndarray:
    """n random matrices, each with its own scales, of ``rank`` + ``shared`` I."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, rank or 2 * d, d)) * np.exp(rng.standard_normal((n, 1, d)))
    return np.einsum("nmi,nmj->nij", a, a) / d + shared * np.eye(d)


def network(n: int, precision=SINGLE) -> Star:
    return Star(MPI.COMM_SELF, n, "shared", Streams(1), precision, Clock(), Round(9))


def prepared(
    table: dict, L: np.ndarray, precision=SINGLE, shared: float = 0.01
) -> tuple[Compressor, Star]:
    """The compressor of ``table``, prepared with the matrices ``L``, and the network it used."""
    n, d = L.shape[:2]
    star = network(n, precision)
    compressor = make(table).bind(d, n, precision)
    compressor.prepare(star, Only(L, shared))
    star.ledger.end_round()
    return compressor, star


def smooth(inner: dict, **keys) -> dict:
    return {"name": "smooth", "inner": inner} | keys


def roots_of(compressor) -> np.ndarray:
    return compressor._roots.rows.astype(float)
