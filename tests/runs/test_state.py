"""What methods and metrics keep between rounds, and what `run.debug` sees."""

import json
import re

import numpy as np
import pytest

import mpisim
from mpisim.comm.communicators import OneProcess
from mpisim.comm.debug import MARKS, mark_in, poison, poisoned
from mpisim.runs.metrics import column
from mpisim.testing import differences
from tests.comm.jobs import mpirun, needs_mpirun
from tests.comm.wrong_methods import keeps_momentum, line, published, right, undecoded
from tests.helpers import columns, run_tables, set_up, table
from tests.runs.support import GD

FIRST, LAST = 13, 30


def tables(rounds=LAST, optimizer="gd", **run):
    method = {"name": f"mine+{optimizer}", "estimator": "mine", "optimizer": optimizer}
    return table(method | {"stepsize": 0.1}, {"name": "topk", "k": 9}, rounds=rounds, **run)


def in_two_parts(log, tables_of):
    full = log.with_name("full.h5")
    run_tables(tables_of(LAST), full)
    run_tables(tables_of(FIRST), log)
    run_tables(tables_of(LAST), log, resume=True)
    return differences(full, log)


def test_all_kinds_of_state_have_their_types_after_a_resume(log):
    """A float is no float64, which would make float32 vectors wider; a queue is a list.

    The messages depend on a list that is changed in place, and steps on one of the optimizer.
    """
    result = []

    def kinds(value):
        if isinstance(value, list | tuple):
            return type(value), [kinds(v) for v in value]
        if isinstance(value, dict):
            return dict, [(kinds(k), kinds(v)) for k, v in value.items()]
        return type(value), getattr(value, "dtype", None), getattr(value, "shape", None)

    @mpisim.estimator("mine")
    class Mine(mpisim.Estimator):
        h_i = mpisim.PerWorker("a row each")
        last_i = mpisim.PerWorker("their last three messages, and their norms (m,)")
        h = mpisim.AtServer()
        notes = mpisim.Shared()
        later = mpisim.Shared()

        def start(self, x):
            self.h_i, self.h = self.star.zeros(self.star.m, len(x)), self.star.zeros(len(x))
            self.last_i = ([self.h_i] * 3, np.arange(self.star.m), None)
            self.notes = {
                "a": [True, None, 3, 10**30, 0.1, float("inf"), "text é", (1, [2.5, []])],
                (1, "b"): {"x": np.float32(0.1), 2: np.array(7), "none": np.zeros(0)},
            }
            return self.estimate(x)

        def estimate(self, x):
            if self.star.round == 9:
                self.later = "set"
            if self.star.round == FIRST:
                result.append((kinds(self.state()), repr(self.notes), self.later))
            last, *_ = self.last_i
            m_i = self.compress(self.oracle.gradients(x) - sum(last) / 3)
            self.h_i = m_i.add_to(self.h_i)
            last.append(m_i.decoded())
            del last[:-3]
            self.h = self.h + self.star.mean(m_i)
            return self.star.broadcast(self.h)

    @mpisim.optimizer("averaged")
    class Averaged(mpisim.Optimizer):
        past = mpisim.Shared("the last two steps")

        def check(self):
            self.past = []

        def step(self, x, g, gamma):
            self.past = [*self.past[-1:], gamma * g]
            return x - sum(self.past) / 2

    assert in_two_parts(log, lambda rounds: tables(rounds, "averaged")) == []
    one, *others = result
    assert others and all(other == one for other in others)


def test_a_history_that_grows_is_resumed(log, monkeypatch):
    """Its first axis, or that after the workers'; a vector keeps its dimension."""

    @mpisim.estimator("mine")
    class Mine(mpisim.Estimator):
        h_i = mpisim.PerWorker("(m, t, d)")
        h = mpisim.AtServer("(t, d)")

        def start(self, x):
            m_i = self.oracle.gradients(x)
            self.h_i, self.h = m_i[:, None], x[None]
            return self.estimate(x)

        def estimate(self, x):
            m_i = self.compress(self.oracle.gradients(x) - self.h_i.mean(axis=1))
            self.h_i = np.concatenate([self.h_i, m_i.decoded()[:, None]], axis=1)
            self.h = np.concatenate([self.h, self.star.mean(m_i)[None]])
            return self.star.broadcast(self.h.mean(axis=0))

    assert in_two_parts(log, tables) == []
    setup = set_up(tables())
    setup.state.step(0.1)
    shapes = setup.state.shapes()
    for wrong in ((), (123,), (2, 2, 123), (2, 122)):
        changed = shapes | {"estimator.h": wrong}
        monkeypatch.setattr(setup.state, "shapes", lambda changed=changed: changed)
        with pytest.raises(mpisim.InputError, match=r"its state has estimator\.h of shape \("):
            setup.state.require_shapes(shapes)


@pytest.mark.parametrize("log_every", [1, 4])  # 13 is a row of the first part alone
def test_a_metric_keeps_what_it_declares(log_every, log):
    """The largest |g^k|^2 so far, how many rows there were, and bits of each worker.

    A running maximum fell with a resume, and a count of rows has none of the first part.
    """

    @mpisim.metric("largest")
    class Largest(mpisim.Metric):
        columns = (
            column("largest", "|g|^2 so far"),
            column("rows", "so far"),
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
            return np.array([self.g, self.count[0], rows[-1]])

    def named(rounds):
        run = {"rounds": rounds, "columns": ["largest"], "log_every": log_every}
        return table(GD | {"name": "ef21"}, {"name": "topk", "k": 9}, **run)

    assert in_two_parts(log, named) == []
    result = columns(log)
    assert (np.diff(result["largest"]) >= 0).all() and result["largest"][-1] > 0
    assert result["rows"].tolist() == list(range(1, len(result["rows"]) + 1))
    assert (np.diff(result["bits"]) >= 0).all() and result["bits"][-1] > 4000


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("mark", MARKS)
def test_arithmetic_and_rounding_pass_poison_on(mark, dtype):
    v = poisoned(np.ones(5, dtype), mark)
    assert np.isnan(v).all() and v.dtype == dtype
    assert mark_in(np.concatenate([[1.0, np.nan], (3 * v - 1).astype(np.float32)])) == mark
    assert mark_in(np.sqrt(v).sum() / 7) == mark == mark_in(poison(mark))


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
    "unsent_point": "method 'shifted-unsent_point', round 1: its y on rank 0 has what the server",
    "of_other_clients": "its y on rank 1 has what the server sent to clients of other ranks alone",
    "summed_without_a_message": "it calls star.sum_over_workers, which is for the log",
    "published": "it calls star.publish, which is for the log",
    "steps_of_its_own": r".* the step size is 0\.1 on rank 0 .*, 1\.1 on rank 1 ",
    "none_on_one_rank": r".* estimator\.z_i is null on rank 0 .*, an array on ranks 1-2 ",
    "kept_by_some_ranks": r".* estimator\.z_i is missing on rank 0 .*, an array on ranks 1-2 ",
}


@needs_mpirun
@pytest.mark.mpi
def test_all_ranks_end_with_the_same_line():
    lines = json.loads(mpirun(3, "-m", "tests.comm.wrong_methods").stdout)
    assert lines.keys() == WRONG.keys()
    for name, (one, *others) in lines.items():
        assert all(other == one for other in others)
        assert re.match(WRONG[name], one.removeprefix(f"method 'shifted-{name}', round 0: ")), one


def test_one_process_sees_what_is_kept_undecoded_or_crosses_uncharged():
    assert line(right, OneProcess()) == line(keeps_momentum, OneProcess()) == ""
    assert re.search(WRONG["undecoded"], line(undecoded, OneProcess()))
    assert re.search(WRONG["published"], line(published, OneProcess()))


@pytest.mark.parametrize("name", ["lag", "dcgd"])
def test_what_the_star_asks_for_itself_is_allowed(name):
    """Flags, what attackers know, and columns: they need all workers, and are no messages."""
    keys = {"zeta": 2.0} if name == "lag" else {}
    tables = table(
        GD | {"name": name} | keys,
        {"name": "identity"},
        rounds=3,
        debug=True,
        columns=["estimates"],
    )
    run_tables(tables | {"attack": {"name": "ipm", "share": 0.2}}, comm=OneProcess())
