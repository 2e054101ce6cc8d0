"""Checkpoints whose checksum fits, but whose content cannot be."""

import io
import json
import shutil

import h5py
import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.runs import checkpoint
from tests.helpers import columns, run_tables
from tests.runs.support import killed, tables


def rewritten(path, change):
    """Change the content of a checkpoint, with a checksum that fits."""
    memory = io.BytesIO(path.read_bytes()[checkpoint.HEADER :])
    with h5py.File(memory, "r+") as file:
        change(file)
    content = memory.getvalue()
    path.write_bytes(checkpoint._header(content) + content)


def replaced(name, value):
    def change(file):
        if name in file:
            del file[name]
        if value is not None:
            file[name] = value

    return change


def marked(mark):
    return replaced("log", json.dumps(mark))


def elsewhere(kind):
    """x as it was, but in another file, which the checksum does not cover."""

    def change(file):
        x = file["state/x"][()]
        x.tofile("x.raw")
        with h5py.File("x.h5", "w") as other:
            other["x"] = x
        del file["state/x"]
        if kind == "link":
            file["state/x"] = h5py.ExternalLink("x.h5", "x")
        elif kind == "raw":
            file["state"].create_dataset("x", x.shape, x.dtype, external="x.raw")
        else:
            layout = h5py.VirtualLayout(x.shape, x.dtype)
            layout[:] = h5py.VirtualSource("x.h5", "x", x.shape)
            file["state"].create_virtual_dataset("x", layout)

    return change


IMPOSSIBLE = {
    "x behind a link": elsewhere("link"),
    "x in a raw file": elsewhere("raw"),
    "x in a virtual data set": elsewhere("virtual"),
    "a round below 0": replaced("state/round", -5),
    "a round that is not one": replaced("state/round", np.zeros(3)),
    "another round": replaced("state/round", 7),
    "a round in words": replaced("state/round", "five"),
    "no round": replaced("state/round", None),
    "no state": replaced("state", None),
    "a state that is a number": replaced("state", 3),
    "no identity": replaced("identity", None),
    "an identity that is a number": replaced("identity", 3),
    "no format": lambda file: file.attrs.pop("format"),
    "no mark": replaced("log", None),
    "a mark that is a number": replaced("log", 3),
    "a mark that is not JSON": replaced("log", "{"),
    "a mark that is a list": marked([1, 2, 3]),
    "a mark of nothing": marked({}),
    "a mark of fewer rows": marked({"rows": 3, "digest": "0" * 64, "attributes": {}}),
    "a mark of rows below 0": marked({"rows": -1, "digest": "0" * 64, "attributes": {}}),
    "a mark of more rows": marked({"rows": 1 << 62, "digest": "0" * 64, "attributes": {}}),
    "a mark of rows in words": marked({"rows": "20", "digest": "0" * 64, "attributes": {}}),
    "a mark of other rows": marked({"rows": 20, "digest": "0" * 64, "attributes": {}}),
    "a mark without a digest": marked({"rows": 20, "attributes": {}}),
    "a digest that is a number": marked({"rows": 20, "digest": 3, "attributes": {}}),
    "attributes that are a number": marked({"rows": 20, "digest": "0" * 64, "attributes": 3}),
    "no x": replaced("state/x", None),
    "another x": replaced("state/x", np.zeros(3)),
    "x in words": replaced("state/x", "x"),
    "a shift of fewer workers": replaced("state/parts/estimator/h_i/0", np.zeros((2, 123))),
    "a shift without workers": replaced("state/parts/estimator/h_i/0", 1.0),
    "a shift of another dimension": replaced("state/parts/estimator/h_i/0", np.zeros((6, 5))),
    "no shift": replaced("state/parts/estimator/h_i", None),
    "no array of a shift": replaced("state/parts/estimator/h_i/0", None),
    "no shift on the server": replaced("state/parts/estimator/h", None),
    "a shift that is a number": replaced("state/parts/estimator/h", 3),
    "a tree that is not JSON": replaced("state/parts/estimator/h/tree", "{"),
    "a tree of unknown kind": replaced("state/parts/estimator/h/tree", '{"set": [1]}'),
    "a tree without end": replaced("state/parts/estimator/h/tree", "[" * 100_000),
    "what is not declared": replaced("state/parts/estimator/later/tree", "1"),
    "no estimator": replaced("state/parts/estimator", None),
    "a shorter shift on the server": replaced("state/parts/estimator/h/0", np.zeros(5)),
    "a matrix on the server": replaced("state/parts/estimator/h/0", np.zeros((3, 3))),
    "bits below 0": replaced("state/ledger/worker_bits_up", np.full(6, -1)),
    "a total too few": replaced("state/ledger/totals", np.zeros(5, int)),
    "no ledger": replaced("state/ledger", None),
    "a ledger that is a number": replaced("state/ledger", 3),
    "fewer clocks": replaced("state/seconds", np.zeros(3)),
    "calls in words": replaced("state/oracle_calls", "many"),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a run that was killed."""
    folder = tmp_path_factory.mktemp("killed")
    with pytest.MonkeyPatch.context() as patch:
        killed(patch, folder / "log.h5")
    return folder


@pytest.mark.drawn(24)
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_content_is_one_line(name, tmp_path, ended, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ended, tmp_path, dirs_exist_ok=True)
    log = tmp_path / "log.h5"
    rounds = columns(log)["round"]
    rewritten(checkpoint.path_for(log), IMPOSSIBLE[name])
    checkpoint.former(checkpoint.path_for(log)).unlink()
    with pytest.raises(InputError) as error:
        run_tables(tables(), log, resume=True)
    assert "\n" not in str(error.value)
    assert np.array_equal(columns(log)["round"][:20], rounds[:20])
