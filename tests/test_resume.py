"""Resume continues bit-identically, and refuses what is not the same experiment."""

import numpy as np
import pytest

from mpisim import checkpoint
from mpisim.errors import InputError
from tests.helpers import columns, run_tables, table

CASES = [
    ({"name": "marina", "p": 0.2}, {"name": "randk", "k": 4}),
    ({"name": "diana"}, {"name": "qsgd", "s": 3}),
    ({"name": "ef21"}, {"name": "topk", "k": 4}),
    ({"name": "ef"}, {"name": "scaled-sign"}),
    ({"name": "heavy-ball"}, {"name": "natural"}),
    ({"name": "cd-adam"}, {"name": "scaled-sign"}),
    ({"name": "ef-amsgrad"}, {"name": "topk", "k": 4}),
    ({"name": "1bit-adam", "warmup": 16}, {"name": "scaled-sign"}),
    ({"name": "vr-marina", "batch": 7, "p": 0.2}, {"name": "randk", "k": 4}),
    ({"name": "vr-marina-online", "batch": 7, "p": 0.2}, {"name": "randk", "k": 4}),
    ({"name": "vr-diana", "batch": 0.1}, {"name": "randk", "k": 4}),
    ({"name": "pp-marina", "participants": 2, "p": 0.2}, {"name": "qsgd", "s": 3}),
]


@pytest.mark.parametrize(("method", "compressor"), CASES, ids=[m["name"] for m, _ in CASES])
def test_in_two_parts_as_in_one(method, compressor, tmp_path):
    method = method | {"stepsize": 0.1}
    whole, parts = tmp_path / "whole.h5", tmp_path / "parts.h5"
    reference = run_tables(table(method, compressor, rounds=30), whole)
    run_tables(table(method, compressor, rounds=13), parts)
    result = run_tables(
        table(method, compressor, rounds=30, layout="dedicated"), parts, resume=True
    )
    assert np.array_equal(result.x, reference.x)
    one, two = columns(whole), columns(parts)
    for name in one:
        if not name.startswith("time_"):
            assert np.array_equal(one[name], two[name]), name
        assert (np.diff(two[name]) >= 0).all() or not name.startswith("time_")


def test_another_experiment_is_refused(tmp_path):
    log = tmp_path / "log.h5"
    run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=3), log)
    with pytest.raises(InputError, match=r"run\.seed = '1', this run has '2'"):
        run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=5, seed=2), log, resume=True)
    with pytest.raises(InputError, match="no checkpoint"):
        run_tables(
            table({"name": "gd", "stepsize": 0.1}, rounds=5), tmp_path / "other.h5", resume=True
        )
    checkpoint.path_for(log).write_bytes(b"rubbish")
    with pytest.raises(InputError, match="not a readable checkpoint"):
        run_tables(table({"name": "gd", "stepsize": 0.1}, rounds=5), log, resume=True)
