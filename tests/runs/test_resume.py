"""Resume continues bit-identically, and refuses what is not the same experiment."""

import io
import json
import shutil
import tomllib

import h5py
import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.runs import checkpoint, host, loop
from mpisim.runs.experiment import parse
from mpisim.runs.log import journal
from tests.helpers import attributes, columns, run_tables, some_of, table
from tests.resumes import FIRST, LAST, differences, experiments
from tests.runs.support import Killed, die, killed, put_elsewhere, tables

CASES = list(experiments())
GD = {"name": "gd", "stepsize": 0.1}
# what they send has bits that `verify` counts from the log alone
EXACT = ("identity", "randk", "permk", "scaled-sign", "compose", "pattern", "natural", "")


@pytest.mark.drawn(10)
@pytest.mark.parametrize(("name", "tables"), CASES, ids=[name for name, _ in CASES])
def test_in_two_parts_as_in_one(name, tables, tmp_path, command):
    """The first is a run in debug mode; and `mpisim verify` finds nothing wrong with the other."""
    full, parts = tmp_path / "full.h5", tmp_path / "parts.h5"
    run_tables(tables, full)
    first = tables | {"run": tables["run"] | {"rounds": FIRST, "debug": True}}
    run_tables(first, parts)
    run_tables(tables | {"run": {"rounds": LAST, "layout": "dedicated"}}, parts, resume=True)
    assert differences(full, parts) == []
    assert tomllib.loads(attributes(parts)["config"])["run"]["rounds"] == LAST
    for column, values in columns(parts).items():
        assert (np.diff(values) >= 0).all() or not column.startswith("time_")
    output = command("verify", full)
    assert "nothing is wrong" in output and "!!" not in output
    exact = tables.get("compressor", {}).get("name", "") in EXACT
    estimator = parse(tables).method.estimator
    exact = exact and estimator.replayed and estimator.name != "ef21-p"  # TopK down
    assert exact == ("ok  bits_up, bits_down" in output), output


def test_a_resumed_run_says_that_its_seconds_are_those_of_two_places(tmp_path, monkeypatch):
    log, kept = tmp_path / "log.h5", []
    with monkeypatch.context() as patch:
        patch.setattr(host, "oversubscribed", lambda places: True)
        run_tables(tables(), log)
    for rounds, network in ((40, ""), (50, "10mbit"), (60, "10mbit")):
        monkeypatch.setenv("MPISIM_NETWORK", network)
        run_tables(tables(rounds), log, resume=True)
        of_log = attributes(log)
        kept.append((of_log["oversubscribed"], of_log["resumed_elsewhere"]))
    assert kept == [(1, 0), (1, 1), (1, 1)]


@some_of(2, log_every=[1, 7], problem=["nonconvex-loss", "quadratic"])
def test_from_each_checkpoint_also_between_rows(problem, log_every, tmp_path, monkeypatch):
    """With a checkpoint at each look, the run itself is not changed, and each one is enough."""
    data = {"dimension": 20, "noise": 0.3} if problem == "quadratic" else {"data": "sample"}
    settings = {"rounds": 30, "log_every": log_every}
    tables = table({"name": "marina", "stepsize": 0.1, "p": 0.2}, {"name": "randk", "k": 4})
    tables["problem"] = {"name": problem, "workers": 4} | data
    full, log = tmp_path / "full.h5", tmp_path / "log.h5"
    run_tables(tables | {"run": settings}, full)

    result = []
    save = checkpoint.save

    def save_and_keep(path, identity, state, mark, keep=True):
        save(path, identity, state, mark, keep)
        if not state:
            return
        result.append((state["round"], tmp_path / f"{state['round']}.h5"))
        shutil.copy(log, result[-1][1])
        shutil.copy(journal.path_for(log), journal.path_for(result[-1][1]))
        shutil.copy(path, checkpoint.path_for(result[-1][1]))

    monkeypatch.setattr(checkpoint, "save", save_and_keep)
    monkeypatch.setattr(loop, "FASTER", 1)  # looks before each round
    run_tables(tables | {"run": settings | {"checkpoint_seconds": 1e-9}}, log)
    monkeypatch.undo()
    assert differences(full, log) == []
    assert [k for k, _ in result] == list(range(31))
    for k, part in result[:: 5 if log_every == 7 else 15]:
        run_tables(tables | {"run": settings}, part, resume=True)
        assert differences(full, part) == [], k


def test_another_experiment_is_refused(tmp_path, monkeypatch):
    log = tmp_path / "log.h5"
    run_tables(table(GD, rounds=3), log)

    def refused(match, method=GD, **run):
        with pytest.raises(InputError, match=match):
            run_tables(table(method, **({"rounds": 5} | run)), log, resume=True)

    refused("method.stepsize = 0.1, this run has 0.2", GD | {"stepsize": 0.2})
    refused("run.rounds: 2 is not allowed; it must be at least 3", rounds=2)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "FORMAT", 99)
        refused("format = 4, this run has 99")


def test_data_that_changed_is_refused(tmp_path):
    log, data = tmp_path / "log.h5", tmp_path / "data"
    text = "".join(f"{'+1' if i % 2 else '-1'} 1:{i}.5 3:1\n" for i in range(12))
    data.write_text(text)
    tables = table(GD, rounds=3, problem={"name": "logistic", "data": str(data)})
    run_tables(tables, log)
    data.write_text(text.replace("3:1", "3:2", 1))
    with pytest.raises(InputError, match="has problem identity = "):
        run_tables(tables, log, resume=True)


def test_a_run_that_starts_anew_forgets_old_checkpoints(tmp_path):
    log = tmp_path / "log.h5"
    run_tables(tables(13), log)
    run_tables(tables(20), log, resume=True)
    with pytest.raises(Killed), pytest.MonkeyPatch.context() as patch:
        patch.setattr("mpisim.runs.loop.Loop.run", die)
        run_tables(tables(), log, force=True)
    left = sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("log"))
    assert left == ["log.h5", "log.h5.ckpt", "log.h5.journal"]
    result, _ = checkpoint.load(tmp_path / "log.h5.ckpt", {}, accept=True)
    assert result.state == {} and result.log.rows == 0


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


def elsewhere(how):
    """x as it was, but in another file, which the checksum does not cover."""
    return lambda file: put_elsewhere(file["state"], "x", how)


def packed_shift(file):
    """Of the right shape, but compressed: 10^12 zeros would fit into as few bytes."""
    name = "state/parts/estimator/h_i/0"
    shift = np.zeros_like(file[name][()])
    del file[name]
    file.create_dataset(name, data=shift, compression="gzip")


IMPOSSIBLE = {
    "x behind a link": elsewhere("link"),
    "x in a raw file": elsewhere("raw"),
    "x in a virtual data set": elsewhere("virtual"),
    "a round below 0": replaced("state/round", -5),
    "a round in words": replaced("state/round", "five"),
    "no round": replaced("state/round", None),
    "no state": replaced("state", None),
    "no identity": replaced("identity", None),
    "no format": lambda file: file.attrs.pop("format"),
    "no mark": replaced("log", None),
    "a mark that is not JSON": replaced("log", "{"),
    "a mark of nothing": marked({}),
    "a mark of fewer rows": marked({"rows": 3, "digest": "0" * 64, "attributes": {}}),
    "a mark of more rows": marked({"rows": 1 << 62, "digest": "0" * 64, "attributes": {}}),
    "a mark of other rows": marked({"rows": 20, "digest": "0" * 64, "attributes": {}}),
    "a mark without a digest": marked({"rows": 20, "attributes": {}}),
    "no x": replaced("state/x", None),
    "x in words": replaced("state/x", "x"),
    "a shift of fewer workers": replaced("state/parts/estimator/h_i/0", np.zeros((2, 123))),
    "a shift of another dimension": replaced("state/parts/estimator/h_i/0", np.zeros((6, 5))),
    "a shift that expands": packed_shift,
    "no shift": replaced("state/parts/estimator/h_i", None),
    "no shift on the server": replaced("state/parts/estimator/h", None),
    "a tree that is not JSON": replaced("state/parts/estimator/h/tree", "{"),
    "a tree of unknown kind": replaced("state/parts/estimator/h/tree", '{"set": [1]}'),
    "a tree without end": replaced("state/parts/estimator/h/tree", "[" * 100_000),
    "what is not declared": replaced("state/parts/estimator/later/tree", "1"),
    "no estimator": replaced("state/parts/estimator", None),
    "a shorter shift on the server": replaced("state/parts/estimator/h/0", np.zeros(5)),
    "bits below 0": replaced("state/ledger/worker_bits_up", np.full(6, -1)),
    "a total too few": replaced("state/ledger/totals", np.zeros(5, int)),
    "no ledger": replaced("state/ledger", None),
    "calls in words": replaced("state/oracle_calls", "many"),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a run that was killed."""
    folder = tmp_path_factory.mktemp("killed")
    with pytest.MonkeyPatch.context() as patch:
        killed(patch, folder / "log.h5")
    return folder


@some_of(8, name=IMPOSSIBLE)
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
