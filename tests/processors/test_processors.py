"""Logs, x and step sizes have the same bits under the settings of other processors."""

import pytest

from mpisim.compressors.base import COMPRESSORS
from mpisim.problems.base import PROBLEMS
from tests.processors.experiments import chosen, digests, write_dense
from tests.processors.settings import NEHALEM

IDENTITY = {"name": "identity"}


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    path = tmp_path_factory.mktemp("processors") / "dense.txt"
    write_dense(path)
    return path


@pytest.mark.slow
def test_the_same_bits(dense, tmp_path):
    """Under the setting that differs most, in ten experiments; `make trial` tries three in all."""
    if lacking := NEHALEM.lacks():
        pytest.skip(f"this processor lacks {', '.join(lacking)}")
    found, own = NEHALEM.digests(dense, "usual", tmp_path), digests(str(dense), "usual")
    assert len(own) > 20
    assert [name for name in own if found[name] != own[name]] == []


def test_all_problems_and_compressors_take_part(dense):
    tables = [tables for _, tables in chosen(str(dense), "usual")]
    assert {table["problem"]["name"] for table in tables} == _own(PROBLEMS) - {"torch"}
    compressors = [table.get("compressor", IDENTITY) for table in tables]
    compressors += [table["method"].get("hessian", IDENTITY) for table in tables]
    used = {name for compressor in compressors for name in _names(compressor)}
    assert used == _own(COMPRESSORS)


def _own(registry):
    """The names of the package's own classes: other tests may have added some."""
    return {name for name, kind in registry.items() if kind.__module__.startswith("mpisim.")}


def _names(compressor):
    yield from (v for k, v in compressor.items() if k == "name")
    for inner in compressor.values():
        if isinstance(inner, dict):
            yield from _names(inner)
