"""Rows of the log: how often, and on which samples they are judged."""

import h5py
import numpy as np
import pytest

from mpisim.analysis.verify.checks import checks
from mpisim.runs.experiment import parse
from mpisim.runs.log import reader
from tests.helpers import columns, run_tables
from tests.problems.torch.support import network

pytest.importorskip("torch")
SIGN, LINEAR = {"name": "scaled-sign"}, {"model": "linear"}


def linear(method, compressor=None, **more):
    keys = {key: more.pop(key) for key in ("log_samples", "chunk") if key in more}
    tables = network(method, compressor, **more)
    tables["problem"] |= LINEAR | keys
    return tables


EVERY = [  # method, run.log_every, the log's; 88 samples, so 88 / (4 x 9) rounds an epoch
    ({"name": "cd-adam", "batch": 9}, {}, 5, "2 epochs"),
    ({"name": "cd-adam", "batch": 0.5}, {}, 4, "2 epochs"),
    ({"name": "cd-adam", "batch": 9}, {"log_every": 3}, 3, "run.log_every, or its default"),
    ({"name": "gd"}, {}, 1, "every round"),
    ({"name": "vr-marina", "batch": 22, "p": 0.5}, {}, 2, "2 epochs"),
]


@pytest.mark.parametrize(("method", "given", "every", "source"), EVERY)
def test_rows_are_2_epochs_apart(method, given, every, source, tmp_path):
    compressor = {"cd-adam": SIGN, "vr-marina": {"name": "randk", "k": 9}}.get(method["name"])
    path, part = tmp_path / "log.h5", tmp_path / "part.h5"
    tables = linear(method, compressor, rounds=11, **given)
    run_tables(tables, path)
    wanted = sorted({*range(0, 12, every), 11})
    assert columns(path)["round"].tolist() == wanted
    log = reader.read(path)
    assert (log.attrs["log_every"], log.attrs["log_every_source"]) == (every, source)
    assert log.config["run"].get("log_every") == given.get("log_every")
    assert not [failure for _, failures in checks(log) for failure in failures]
    run_tables(linear(method, compressor, rounds=7, **given), part)
    run_tables(tables, part, resume=True)
    ours, theirs = (columns(one) for one in (path, part))
    rows = np.isin(ours["round"], theirs["round"])
    assert theirs["round"][-1] == 11 and np.array_equal(ours["loss"][rows][-1], theirs["loss"][-1])


@pytest.mark.parametrize("method", [{"name": "gd"}, {"name": "gd", "batch": 9}])
def test_rows_judged_on_some_samples_leave_the_method_alone(method, tmp_path):
    """Also one whose full gradients are those that rows need."""
    logs = {}
    for judged in (0, 20):
        path = tmp_path / f"{judged}.h5"
        run_tables(linear(method, rounds=4, log_every=2, log_samples=judged), path)
        with h5py.File(path) as file:
            logs[judged] = (
                file["final/x"][:],
                file["rounds/loss"][:],
                file["rounds/oracle_calls"][:],
            )
    whole, some = logs[0], logs[20]
    assert np.array_equal(whole[0], some[0]) and np.array_equal(whole[2], some[2])
    assert not np.isclose(whole[1], some[1], rtol=1e-4).any()


def test_they_are_the_first_of_each_worker():
    few, whole = (
        parse(linear({"name": "gd"}, log_samples=count)).problem.loaded(
            4, 1, 2, 1, np.dtype("float64")
        )
        for count in (20, 0)
    )
    x = whole.initial_point()
    whole.shards = whole.judged = [shard.first(5) for shard in whole.shards]
    losses, gradients = few.losses_and_gradients(x)
    wanted = whole.losses_and_gradients(x)
    assert np.array_equal(losses, wanted[0]) and np.array_equal(gradients, wanted[1])
    assert few.tests == 20 and [len(batch) for batch in few.test_shards] == [5, 5]
    assert np.array_equal(few.test(x)[0][:, 0], whole.test(x)[0][:, 0])
