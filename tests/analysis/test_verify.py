"""`mpisim verify`: nothing is wrong with a log as it is, and whatever is changed in it is found."""

import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from mpisim.analysis.repeat import COLUMNS
from mpisim.analysis.verify import as_written, checks
from mpisim.methods.estimators.feedback import OneBitAdam
from mpisim.runs.log.reader import read
from mpisim.runs.plugins import load
from tests.helpers import cut_rows, forged, run_tables, table

MARINA = {"name": "marina", "stepsize": 0.1, "p": 0.3}
RANDK = {"name": "randk", "k": 4}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A log in which nothing is wrong."""
    log = tmp_path_factory.mktemp("good") / "log.h5"
    run_tables(table(MARINA, RANDK), log)
    return log


@pytest.fixture
def changed(good, tmp_path):
    """changed(change): a log in which ``change(file)`` was made."""

    def one(change):
        log = shutil.copy(good, tmp_path)
        with forged(log) as file:
            change(file)
        return log

    return one


def shifted(name, row, by):
    """A change: adds ``by`` to the row."""

    def change(file):
        file[name][row] += by

    return change


def attribute(name, value):
    """A change of an attribute."""
    return lambda file: file.attrs.update({name: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shifted("rounds/bits_up", 7, -(10**7)), "round 7, bits_up: falls"),
        (shifted("rounds/bits_up", 7, 32), "round 7, bits_up: the log has"),
        (shifted("rounds/bits_down", 7, 32 * 6), "round 7, bits_down: the log has"),
        (shifted("rounds/bits_down", 7, 1), "is not the same for each"),
        (shifted("rounds/oracle_calls", 20, 1), "round 20, oracle_calls: the log has"),
        (shifted("rounds/framing_bits_up", slice(None), 8), "round 0, framing_bits_up"),
        (shifted("rounds/paper_bits_up", slice(3, None), 8), "round 3, paper_bits_up"),
        (shifted("rounds/bits_up_max", 20, 1), "round 20, bits_up_max"),
        (shifted("rounds/bits_up_max", 20, 10**9), "bits_up_max is"),
        (shifted("workers/bits_up", 2, 1), "workers/bits_up sums up to"),
        (shifted("workers/bits_up", [2, 3], [1, -1]), "a worker sent"),
        (shifted("rounds/round", 4, 1), "row 4 is of round 5"),
        (shifted("rounds/loss", 20, np.nan), "done, but the last loss is nan"),
        (attribute("seed", 2), "seed is 2, in config 1"),
        (attribute("schema_version", 0), "schema_version is 0"),
        (lambda file: cut_rows(file, 15), "done, but the last row is that of round 14 of 20"),
    ],
)
def test_what_is_changed_is_detected(change, message, changed, command):
    result = command("verify", changed(change), code=1)
    assert message in result and ("check failed" in result or "checks failed" in result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shifted("rounds/loss", 7, 1e-16), "round 7, loss: the log has 0."),
        (shifted("rounds/grad_norm_sq", slice(5, None), 1e-16), "round 5, grad_norm_sq"),
        (shifted("final/x", 3, 1e-16), "final/x differs, and no column does"),
        (lambda file: file.pop("final/x"), "final/x: the log lacks it"),
        (shifted("workers/rows", [2, 3], [1, -1]), "worker 2, rows: the log has"),
        (lambda file: file.pop("workers/rows"), "workers/rows: the log lacks it"),
    ],
)
def test_what_only_a_rerun_finds(change, message, changed, command):
    log = changed(change)
    command("verify", log)
    assert message in command("verify", log, "--rerun", code=1)


@pytest.mark.parametrize("log_every", [1, 7])
def test_a_run_that_did_not_end_is_repeated(log_every, tmp_path, command, monkeypatch):
    """Also with a parameter and a schedule that depend on run.rounds."""
    log, method = tmp_path / "log.h5", {"name": "1bit-adam", "stepsize": 0.01, "warmup": 0.5}
    method["schedule"] = {"at": [0.4, 0.62]}
    tables = table(method, {"name": "scaled-sign"}, rounds=40, log_every=log_every)

    original = OneBitAdam.estimate

    def estimate(self, x):
        if self.star.round == 29:
            raise KeyboardInterrupt
        return original(self, x)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(OneBitAdam, "estimate", estimate)
        run_tables(tables, log)
    output = command("verify", log, "--rerun")
    assert "failed" in output and "ok  every row of a second run" in output


def test_a_changed_row_is_detected_without_repeating_the_run(good, tmp_path, command):
    log = shutil.copy(good, tmp_path)
    with h5py.File(log, "r+") as file:
        file["rounds/loss"][7] *= 1 + 1e-12
    result = command("verify", log, code=1)
    assert "  ok  bits_up, " in result  # the other checks are made all the same
    assert "!!  rows_sha256" in result and "the rows have changed since they were written" in result
    forged(log).close()
    line = "  --  rows_sha256: the sha256 of the rows, clocks included: no, "
    assert line in command("verify", log)


PLUGIN = """
import mpisim


@mpisim.method("dense-first", dense=True)
class DenseFirst(mpisim.Estimator):
    REPLAYED

    def check(self):
        self.size = float(self.oracle.problem.SIZE)

    def start(self, x):
        return self.star.average(self.star.dense(self.oracle.gradients(x)))

    def estimate(self, x):
        g = self.start(x)
        return g if g @ g < 1e-9 * self.size else self.start(x)
"""


@pytest.mark.parametrize(
    ("replayed", "size", "code", "line"),
    [
        ("", "d", 0, "--  bits_up, .* does not say `replayed = True`; --rerun checks them"),
        ("replayed = True", "l2", 0, "--  bits_up, .* without the data there is AttributeError"),
        ("replayed = True", "d", 1, "!!  bits_up, "),
        ("replayed = False", "d", 0, "--  bits_up, .* needs more of the data than gradients"),
    ],
)
def test_a_plugins_bits_follow_from_the_seed_if_it_says_so(
    replayed, size, code, line, tmp_path, command, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("dense_first.py").write_text(PLUGIN.replace("REPLAYED", replayed).replace("SIZE", size))
    load(["dense_first.py"])
    run_tables(table({"name": "dense-first", "stepsize": 1.0}), tmp_path / "log.h5")
    output = command("verify", "log.h5", "--rerun", "--plugin", "dense_first.py", code=code)
    assert re.search(line, output) and "ok  every row of a second run" in output


def test_documented_checks_are_those_there_are(good):
    text = (Path(__file__).parents[2] / "docs" / "concepts" / "trust.md").read_text()
    log = read(good)
    for what, *_ in [as_written(log), *checks(log)]:
        assert what in text
    assert all(name in text for name in COLUMNS)
