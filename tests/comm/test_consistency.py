"""Ranks with other software, experiments or data: one line that says which and what."""

from concurrent.futures import ThreadPoolExecutor
from socket import gethostname
from threading import Barrier

import pytest

from mpisim.comm.job import require_consistent
from mpisim.compressors.sparse import RandK
from mpisim.core.errors import InconsistentRanks
from mpisim.core.numerics import processor
from mpisim.problems.linear_models import LeastSquares
from mpisim.problems.torch.problem import Torch
from mpisim.runs import host
from mpisim.runs.host import software, source
from tests.comm.jobs import HANG_SECONDS
from tests.helpers import run_tables, table


class Rank:
    """One of some threads that talk like the ranks of a communicator."""

    def __init__(self, rank, size, shared, barrier):
        self.rank, self.size, self.shared, self.barrier = rank, size, shared, barrier
        self.pickled = False

    def Allgather(self, own, out):
        out[:] = self._all(own.copy())

    def allgather(self, own):
        self.pickled = True
        return self._all(own)

    def _all(self, own):
        self.shared[self.rank] = own
        self.barrier.wait(timeout=HANG_SECONDS)
        found = list(self.shared)
        self.barrier.wait(timeout=HANG_SECONDS)
        return found


def job(*facts):
    """What each rank says (None: nothing), and whether any facts travelled."""
    shared, barrier = [None] * len(facts), Barrier(len(facts))
    ranks = [Rank(rank, len(facts), shared, barrier) for rank in range(len(facts))]

    def check(rank):
        try:
            require_consistent(rank, facts[rank.rank])
        except InconsistentRanks as error:
            return str(error)

    with ThreadPoolExecutor(len(facts)) as pool:
        said = list(pool.map(check, ranks))
    return said, any(rank.pickled for rank in ranks)


def test_equal_ranks_exchange_digests_only():
    facts = {"numpy": "2.4.6", "mpi4py": "4.1.2"}
    assert job(facts, dict(reversed(facts.items())), facts) == ([None] * 3, False)


def test_a_rank_that_differs_is_named_on_every_rank():
    same = {"numpy": "2.4.6", "scipy": "1.17"}
    said, _ = job(same, same | {"numpy": "2.3.1"}, same)
    assert said[0] == said[1] == said[2]
    host = gethostname()
    expected = f"numpy is 2.4.6 on ranks 0, 2 ({host}), 2.3.1 on rank 1 ({host})"
    assert expected in said[0] and "scipy" not in said[0]
    assert InconsistentRanks.exit_code == 2


def test_software_tells_another_source_with_the_same_version(monkeypatch, tmp_path):
    source.cache_clear()
    own = software()
    assert {"mpisim", "Python", "numpy", "h5py", "mpi4py", "MPI"} <= own.keys()
    assert own == software() and "\n" not in str(own)
    (tmp_path / "__init__.py").write_text("__version__ = 1")
    monkeypatch.setattr(host, "PACKAGE", tmp_path)
    source.cache_clear()
    try:
        assert software()["mpisim"] != own["mpisim"]
    finally:
        source.cache_clear()


def test_a_set_up_compares_experiment_and_data(monkeypatch):
    seen = {}
    monkeypatch.setattr(
        "mpisim.runs.setup.require_consistent", lambda comm, facts: seen.update(facts)
    )
    run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=1))
    assert "sha256:" in seen["data"] and seen["problem.data"] == "'sample'"
    assert len(seen["module mpisim.compressors.base"]) == 12  # and so of a plugin's modules
    assert seen["run.rounds"] == "1" and seen["method.stepsize"] == "0.1"
    assert not processor.facts().keys() & seen.keys()  # the bits are the same on any


@pytest.mark.parametrize("tied", [LeastSquares, RandK])
def test_what_is_tied_to_the_processor_needs_the_same_on_all_ranks(monkeypatch, tied):
    """PyTorch, say, or a plugin that uses BLAS: a problem, or a compressor inside another."""
    seen = {}
    monkeypatch.setattr(
        "mpisim.runs.setup.require_consistent", lambda comm, facts: seen.update(facts)
    )
    monkeypatch.setattr(tied, "portable", False)
    inner = {"name": "smooth", "inner": {"name": "randk", "k": 3}}
    problem = {"name": "least-squares"}
    run_tables(table({"name": "dcgd", "stepsize": 0.1}, inner, problem=problem, rounds=1))
    assert processor.facts().items() <= seen.items()
    assert not Torch.portable
