"""Ranks with other software, experiments or data: one line that says which and what."""

import pytest

from mpisim.compressors.sparse import RandK
from mpisim.core.numerics import processor
from mpisim.problems.linear_models import LeastSquares
from mpisim.problems.torch.problem import Torch
from mpisim.runs import host
from mpisim.runs.host import software, source
from tests.helpers import run_tables, table


def test_software_tells_another_source_with_the_same_version(monkeypatch, tmp_path):
    source.cache_clear()
    item = software()
    assert {"mpisim", "Python", "numpy", "h5py", "mpi4py", "MPI"} <= item.keys()
    assert item == software() and "\n" not in str(item)
    monkeypatch.setattr(host, "PACKAGE", tmp_path)
    sources = {item["mpisim"]}
    try:
        for count, name in enumerate(("__init__.py", "methods.toml"), 2):
            (tmp_path / name).write_text("__version__ = 1")
            source.cache_clear()
            sources.add(software()["mpisim"])
            assert len(sources) == count
    finally:
        source.cache_clear()


@pytest.fixture
def seen(monkeypatch):
    """The facts that ranks compare."""
    facts = {}
    target = "mpisim.runs.setup.require_consistent"
    monkeypatch.setattr(target, lambda comm, given: facts.update(given))
    return facts


def test_a_set_up_compares_experiment_and_data(seen):
    run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=1))
    assert "sha256:" in seen["data"] and seen["problem.data"] == "'sample'"
    assert len(seen["module mpisim.compressors.base"]) == 12  # and so of a plugin's modules
    assert seen["run.rounds"] == "1" and seen["method.stepsize"] == "0.1"
    assert not processor.facts().keys() & seen.keys()  # the bits are the same on any


@pytest.mark.parametrize("tied", [LeastSquares, RandK])
def test_what_is_tied_to_the_processor_needs_the_same_on_all_ranks(seen, monkeypatch, tied):
    """PyTorch, say, or a plugin that uses BLAS: a problem, or a compressor inside another."""
    monkeypatch.setattr(tied, "portable", False)
    inner = {"name": "smooth", "inner": {"name": "randk", "k": 3}}
    problem = {"name": "least-squares"}
    run_tables(table({"name": "dcgd", "stepsize": 0.1}, inner, problem=problem, rounds=1))
    assert processor.facts().items() <= seen.items()
    assert not Torch.portable
