"""Resume continues bit-identically, and refuses what is not the same experiment."""

import io
import json
import os
import shutil
import stat
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
from tests.runs.support import GD, Killed, die, killed, put_elsewhere, refused, tables

CASES = list(experiments())
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


def test_a_resumed_run_says_that_its_seconds_are_those_of_two_places(log, monkeypatch):
    kept = []
    parts = ((30, True, ""), (40, False, ""), (50, False, "10mbit"), (60, False, "10mbit"))
    for rounds, full, network in parts:
        monkeypatch.setattr(host, "oversubscribed", lambda places, full=full: full)
        monkeypatch.setenv("MPISIM_NETWORK", network)
        run_tables(tables(rounds), log, resume=True)
        of_log = attributes(log)
        kept.append((of_log["oversubscribed"], of_log.get("resumed_elsewhere")))
    assert kept == [(1, None), (1, 0), (1, 1), (1, 1)]


@some_of(1, log_every=[1, 7])
def test_from_each_checkpoint_also_between_rows(log_every, log, tmp_path, monkeypatch):
    """Checkpoints do not change a run; those tried suffice, with the rows synced by then."""
    method, full = GD | {"name": "marina", "p": 0.2}, tmp_path / "full.h5"
    tables = table(method, {"name": "randk", "k": 4}, rounds=30, log_every=log_every)
    run_tables(tables, full)
    parts, synced, fsync, save = [], {}, os.fsync, checkpoint.save

    def remember(descriptor):
        fsync(descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            synced[status.st_ino] = os.pread(descriptor, status.st_size, 0)

    def save_and_keep(path, identity, state, mark, keep=True):
        save(path, identity, state, mark, keep)
        if state:
            parts.append(part := tmp_path / f"{state['round']}.h5")
            journal.path_for(part).write_bytes(synced[journal.path_for(log).stat().st_ino])
            shutil.copy(path, checkpoint.path_for(part))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", remember)
        patch.setattr(checkpoint, "save", save_and_keep)
        patch.setattr(loop, "FASTER", 1)  # looks before each round
        run_tables(tables | {"run": tables["run"] | {"checkpoint_seconds": 1e-9}}, log)
    assert differences(full, log) == []
    assert [part.stem for part in parts] == [str(k) for k in range(31)]
    for part in parts[:: 5 if log_every == 7 else 15]:
        run_tables(tables, part, resume=True)
        assert differences(full, part) == [], part


def test_another_experiment_is_refused(log, tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.write_text("-1 1:0.5 3:1\n+1 1:1.5 3:1\n" * 6)

    def made(step=0.1, rounds=5):
        problem = {"name": "logistic", "data": str(data)}
        return table(GD | {"stepsize": step}, rounds=rounds, problem=problem)

    run_tables(made(rounds=3), log)
    with refused(tmp_path, r"method\.stepsize = 0\.1, this run has 0\.2"):
        run_tables(made(step=0.2), log, resume=True)
    with refused(tmp_path, r"run\.rounds: 2 is not allowed; it must be at least 3"):
        run_tables(made(rounds=2), log, resume=True)
    with monkeypatch.context() as patch, refused(tmp_path, "format = 4, this run has 99"):
        patch.setattr(checkpoint, "FORMAT", 99)
        run_tables(made(), log, resume=True)
    data.write_text(data.read_text().replace("3:1", "3:2", 1))
    with refused(tmp_path, "has problem identity = "):
        run_tables(made(), log, resume=True)


def test_a_run_that_starts_anew_forgets_old_checkpoints(log, tmp_path, monkeypatch):
    run_tables(tables(13), log)
    run_tables(tables(20), log, resume=True)
    monkeypatch.setattr("mpisim.runs.loop.Loop.run", die)
    with pytest.raises(Killed):
        run_tables(tables(), log, force=True)
    left = {path.name for path in tmp_path.glob("log*")}
    assert left == {"log.h5", "log.h5.ckpt", "log.h5.journal"}
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


def elsewhere(how):
    """x as it was, but in another file, which the checksum does not cover."""
    return lambda file: put_elsewhere(file["state"], "x", how)


def packed_shift(file):
    """Of the right shape, but compressed: 10^12 zeros would fit into as few bytes."""
    name = "state/parts/estimator/h_i/0"
    shift = np.zeros_like(file[name][()])
    del file[name]
    file.create_dataset(name, data=shift, compression="gzip")


MARK = {"rows": 20, "digest": "0" * 64, "attributes": {}}
MISSING = ["state/round", "state", "identity", "log", "state/x", "state/parts/estimator/h_i"]
MISSING += ["state/parts/estimator/h", "state/parts/estimator", "state/ledger"]
WRONG = {  # in place of what a checkpoint has
    "a round below 0": ("state/round", -5),
    "a round in words": ("state/round", "five"),
    "a mark that is not JSON": ("log", "{"),
    "a mark of nothing": ("log", "{}"),
    "a mark of fewer rows": ("log", json.dumps(MARK | {"rows": 3})),
    "a mark of more rows": ("log", json.dumps(MARK | {"rows": 1 << 62})),
    "a mark of other rows": ("log", json.dumps(MARK)),
    "a mark without a digest": ("log", json.dumps({"rows": 20, "attributes": {}})),
    "x in words": ("state/x", "x"),
    "a shift of fewer workers": ("state/parts/estimator/h_i/0", np.zeros((2, 123))),
    "a shift of another dimension": ("state/parts/estimator/h_i/0", np.zeros((6, 5))),
    "a tree that is not JSON": ("state/parts/estimator/h/tree", "{"),
    "a tree of unknown kind": ("state/parts/estimator/h/tree", '{"set": [1]}'),
    "a tree without end": ("state/parts/estimator/h/tree", "[" * 100_000),
    "what is not declared": ("state/parts/estimator/later/tree", "1"),
    "a shorter shift on the server": ("state/parts/estimator/h/0", np.zeros(5)),
    "bits below 0": ("state/ledger/worker_bits_up", np.full(6, -1)),
    "a total too few": ("state/ledger/totals", np.zeros(5, int)),
    "calls in words": ("state/oracle_calls", "many"),
}
IMPOSSIBLE = {name: replaced(*wrong) for name, wrong in WRONG.items()}
IMPOSSIBLE |= {f"no {name}": replaced(name, None) for name in MISSING}
IMPOSSIBLE |= {f"x is a {how}": elsewhere(how) for how in ("link", "raw", "virtual")}
IMPOSSIBLE["no format"] = lambda file: file.attrs.pop("format")
IMPOSSIBLE["a shift that expands"] = packed_shift


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a run that was killed."""
    folder = tmp_path_factory.mktemp("killed")
    with pytest.MonkeyPatch.context() as patch:
        killed(patch, folder / "log.h5")
    return folder


@some_of(8, name=IMPOSSIBLE)
def test_impossible_content_is_one_line(name, log, ended, monkeypatch):
    monkeypatch.chdir(log.parent)
    shutil.copytree(ended, log.parent, dirs_exist_ok=True)
    rewritten(checkpoint.path_for(log), IMPOSSIBLE[name])
    checkpoint.former(checkpoint.path_for(log)).unlink()
    with pytest.raises(InputError) as error:
        run_tables(tables(), log, resume=True)
    assert "\n" not in str(error.value)
    rounds = [columns(path)["round"][:20] for path in (log, ended / "log.h5")]
    assert np.array_equal(*rounds)
