"""What plugins keep between rounds: a run in two parts is the run in one, or an error at once."""

import numpy as np
import pytest

import mpisim
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.runs.metrics import METRICS
from mpisim.testing import differences
from tests.helpers import columns, run_tables, table

FIRST, LAST = 13, 30


@pytest.fixture(autouse=True)
def forgotten():
    """Names of a test's own are gone after it."""
    yield
    for names in (ESTIMATORS, OPTIMIZERS, METRICS):
        for name in names.loaded().keys() & {"mine", "averaged", "largest"}:
            del names[name]


def tables(rounds=LAST, optimizer="gd", **run):
    method = {"name": f"mine+{optimizer}", "estimator": "mine", "optimizer": optimizer}
    return table(method | {"stepsize": 0.1}, {"name": "topk", "k": 9}, rounds=rounds, **run)


def in_two_parts(tmp_path, tables_of):
    whole, log = tmp_path / "whole.h5", tmp_path / "log.h5"
    run_tables(tables_of(LAST), whole)
    run_tables(tables_of(FIRST), log)
    run_tables(tables_of(LAST), log, resume=True)
    return differences(whole, log)


def average(self, x):
    return self.star.average(self.compress(self.oracle.gradients(x)))


def first_round(**values):
    """A first round that sets attributes."""

    def start(self, x):
        for name, value in values.items():
            setattr(self, name, value)
        return self.estimate(x)

    return start


def queue_check(self):
    self.queue = []


def test_a_queue_that_is_changed_in_place_is_resumed(tmp_path):
    """Steps with the mean of the last three messages."""

    @mpisim.estimator("mine")
    class Mine(mpisim.Estimator):
        queue = mpisim.Shared("the last three messages")
        check, start = queue_check, first_round()

        def estimate(self, x):
            self.queue.append(average(self, x))
            del self.queue[:-3]
            return sum(self.queue) / 3

    assert in_two_parts(tmp_path, tables) == []


REFUSED = {  # members of an estimator, and what the message says
    "a list that is not declared": (
        {"check": queue_check},
        r"Mine: .*'queue' is a list.*`queue = Shared\(\)`",
    ),
    "an array that is not declared": (
        {"start": first_round(h_i=np.zeros((6, 123)))},
        r"'h_i' is set in a run.*`h_i = PerWorker\(\)`",
    ),
    "a key of the table": (
        {"__annotations__": {"share": float}, "share": 0.5, "start": first_round(share=0.4)},
        "'share' is set in a run, but is a key of its",
    ),
    "what no checkpoint holds": (
        {"seen": mpisim.Shared(), "start": first_round(seen={1, 2})},
        r"Mine\.seen: a checkpoint cannot hold a set; all",
    ),
    "rows of others": (
        {"seen": mpisim.PerWorker(), "start": first_round(seen=np.zeros((2, 5)))},
        r"seen: has shape \(2, 5\), but is PerWorker",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_resumed_is_refused_before_round_0(what, tmp_path):
    members, said = REFUSED[what]
    members = {"start": first_round(), "estimate": average} | members
    mpisim.estimator("mine")(type("Mine", (mpisim.Estimator,), members))
    with pytest.raises(mpisim.InputError, match=said):
        run_tables(tables(), tmp_path / "log.h5")
    assert (tmp_path / "log.h5").exists() == (what != "a list that is not declared")


def test_all_kinds_of_state_have_their_types_after_a_resume(tmp_path):
    """A float is no float64, which would make float32 vectors wider; a queue is a list."""
    found = []

    def kinds(value):
        if isinstance(value, list | tuple):
            return type(value), [kinds(v) for v in value]
        if isinstance(value, dict):
            return dict, [(kinds(k), kinds(v)) for k, v in value.items()]
        return type(value), getattr(value, "dtype", None), getattr(value, "shape", None)

    @mpisim.estimator("mine")
    class Mine(mpisim.Estimator):
        h_i = mpisim.PerWorker("a row each")
        last_i = mpisim.PerWorker("two of them, and their norms (m,)")
        h = mpisim.AtServer()
        notes = mpisim.Shared()
        later = mpisim.Shared()

        def start(self, x):
            self.h_i, self.h = self.star.zeros(self.star.m, len(x)), self.star.zeros(len(x))
            self.last_i = ([self.h_i + 1, self.h_i], np.arange(self.star.m), None)
            self.notes = {
                "a": [True, None, 3, 10**30, 0.1, float("inf"), "text é", (1, [2.5, []])],
                (1, "b"): {"x": np.float32(0.1), 2: np.array(7), "none": np.zeros(0)},
            }
            return self.estimate(x)

        def estimate(self, x):
            if self.star.round == 9:
                self.later = "set"
            if self.star.round == FIRST:
                found.append((kinds(self.state()), repr(self.notes), self.later))
            m_i = self.compress(self.oracle.gradients(x) - self.h_i)
            self.h_i = m_i.add_to(self.h_i)
            self.last_i[0].append(self.last_i[0].pop(0) * 0.5)
            self.h = self.h + self.star.mean(m_i)
            return self.star.broadcast(self.h)

    assert in_two_parts(tmp_path, tables) == []
    one, *others = found
    assert others and all(other == one for other in others)


def test_an_optimizer_keeps_what_it_declares(tmp_path):
    ESTIMATORS["mine"] = ESTIMATORS["naive"]

    @mpisim.optimizer("averaged")
    class Averaged(mpisim.Optimizer):
        past = mpisim.Shared("the last two steps")

        def check(self):
            self.past = []

        def step(self, x, g, gamma):
            self.past = [*self.past[-1:], gamma * g]
            return x - sum(self.past) / 2

    assert in_two_parts(tmp_path, lambda rounds: tables(rounds, "averaged")) == []


@pytest.fixture
def largest():
    """A metric: the largest |g^k|^2 so far, how many rows there were, and bits of each worker."""

    @mpisim.metric("largest")
    class Largest(mpisim.Metric):
        columns = (
            ("largest", np.float64, "1", "largest |g|^2 so far"),
            ("rows", np.float64, "1", "rows so far"),
            ("bits", np.float64, "bit", "of worker n"),
        )
        g = mpisim.AtServer()
        count = mpisim.Shared()
        bits_i = mpisim.PerWorker()

        def check(self):
            self.g, self.count, self.bits_i = 0.0, [0], np.zeros(self.star.m)

        def up(self, v, upload):
            self.bits_i += upload.message.payload_bits

        def estimated(self, g_hat, g):
            self.g = max(self.g, float((g * g).sum()))

        def values(self, x):
            self.count[0] += 1
            rows = self.star.all_workers(self.bits_i)
            return self.g, self.count[0], rows[-1]


@pytest.mark.parametrize("log_every", [1, 4])  # 13 is a row of the first part alone
def test_a_metric_keeps_what_it_declares(log_every, largest, tmp_path):
    """A running maximum fell with a resume, and a count of rows has none of the first part."""

    def named(rounds):
        ef21 = {"name": "ef21", "stepsize": 0.1}
        run = {"columns": ["largest"], "log_every": log_every}
        return table(ef21, {"name": "topk", "k": 9}, rounds=rounds, **run)

    assert in_two_parts(tmp_path, named) == []
    found = columns(tmp_path / "log.h5")
    assert (np.diff(found["largest"]) >= 0).all() and found["largest"][-1] > 0
    assert found["rows"].tolist() == list(range(1, len(found["rows"]) + 1))
    assert (np.diff(found["bits"]) >= 0).all() and found["bits"][-1] > 4000


def test_a_metric_that_declares_nothing_is_refused(tmp_path):
    @mpisim.metric("largest")
    class Largest(mpisim.Metric):
        columns = (("largest", np.float64, "1", "largest loss so far"),)

        def values(self, x):
            self.largest = max(getattr(self, "largest", 0.0), float(abs(x).max()))
            return (self.largest,)

    with pytest.raises(mpisim.InputError, match=r"'largest' is set in a run.*`largest = Shared\("):
        run_tables(table({"name": "gd", "stepsize": 0.1}, columns=["largest"]))
