"""``run.debug`` sees what a method must not use, on the rank that uses it, and changes no log."""

from __future__ import annotations

import json
import re

import h5py
import numpy as np
import pytest

from mpisim.comm.communicators import OneProcess
from mpisim.comm.debug import MARKS, mark_in, poison, poisoned
from mpisim.core.errors import InputError
from mpisim.runs.experiment import parse
from tests.comm.jobs import ROOT, mpirun, needs_mpirun
from tests.comm.wrong_methods import keeps_momentum, line, right, undecoded
from tests.helpers import run_tables, table

RANDK = {"name": "randk", "k": 4}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("mark", MARKS)
def test_arithmetic_and_rounding_pass_poison_on(mark, dtype):
    v = poisoned(np.ones(5, dtype), mark)
    assert np.isnan(v).all() and v.dtype == dtype
    assert mark_in(np.concatenate([[1.0, np.nan], (3 * v - 1).astype(np.float32)])) == mark
    assert mark_in(np.sqrt(v).sum() / 7) == mark == mark_in(poison(mark))


def test_the_key_is_in_the_log_only_where_it_is_used(tmp_path):
    tables = table({"name": "marina", "stepsize": 0.1}, RANDK, rounds=2)
    run_tables(tables, tmp_path / "a.h5")
    run_tables(tables | {"run": {"rounds": 2, "debug": True}}, tmp_path / "b.h5")
    configs = [h5py.File(tmp_path / name).attrs["config"] for name in ("a.h5", "b.h5")]
    assert "debug" not in configs[0] and "debug = true" in configs[1]
    assert parse(tables | {"run": {"rounds": 2, "debug": False}}) == parse(tables)
    with pytest.raises(InputError, match=re.escape("run.debug: 1 is not allowed")):
        parse(tables | {"run": {"rounds": 2, "debug": 1}})


# What ends the methods of tests/comm/wrong_methods.py on 3 ranks.
WRONG = {
    "right": "$",
    "keeps_momentum": "$",
    "undecoded": "its h_i has a vector that was sent, as it was before compression",
    "of_the_server": "its y on rank 1 has what the server alone knows",
    "state_of_the_server": "its y, which is Shared, on ranks? 1.* differs? from rank 0"
    "|its y on rank 1 has what the server alone knows",
    "of_the_block": "its y, which is Shared, on ranks 1, 2 differs from rank 0",
    "drawn_by_one_rank": "the number of draws for 'extra' on ranks 1, 2 differs from rank 0",
    "of_other_clients": "its y on rank 1 has what the server sent to clients of other ranks alone",
}


@needs_mpirun
@pytest.mark.mpi
def test_all_ranks_end_with_the_same_line():
    job = mpirun(3, "-m", "tests.comm.wrong_methods", cwd=ROOT)
    assert job.returncode == 0, job.stderr
    lines = json.loads(job.stdout)
    assert lines.keys() == WRONG.keys()
    for name, (one, *others) in lines.items():
        assert all(other == one for other in others)
        assert re.match(WRONG[name], one.removeprefix(f"method 'shifted-{name}', round 0: ")), one


def test_one_process_sees_what_is_kept_undecoded():
    assert line(right, OneProcess()) == line(keeps_momentum, OneProcess()) == ""
    assert re.search(WRONG["undecoded"], line(undecoded, OneProcess()))
