"""No kernel is compiled or loaded while a method's clock runs, and a rehearsal leaves no trace."""

import gc

import numpy as np
import pytest
from numba import njit

import mpisim
from mpisim.comm import clock as phases
from mpisim.compressors.base import Identity
from mpisim.core.errors import InputError
from mpisim.runs import rehearsal
from mpisim.runs.experiment import parse
from mpisim.runs.metrics import column
from mpisim.runs.rehearsal import Rehearsal, rehearse
from mpisim.runs.run_state import RunState
from tests.helpers import before_row, run_tables, set_up, some_of, table
from tests.problems.test_base import Bowls
from tests.resumes import SMOOTH
from tests.runs.support import GD, die, run_afresh


def test_without_the_rehearsal_kernels_are_loaded_on_the_way(monkeypatch):
    """Else `test_no_module_and_no_kernel_is_missing` could not fail."""
    monkeypatch.setattr("mpisim.runs.loop.rehearse", lambda setup: None)
    tables = table(GD | {"name": "ef21"}, {"name": "topk", "k": 20})
    assert run_afresh(parse(tables))[0].clock.seconds[phases.COMPILE] > 0


def test_a_late_kernel_is_charged_to_nobody():
    @njit
    def late(x):
        return np.sort(x)

    clock = phases.Clock()
    with phases.uncharged(clock):
        clock.to(phases.COMPRESS)
        late(np.ones(3))
        assert clock.phase == phases.COMPRESS
        clock.to(phases.EVALUATE)
    assert clock.seconds[phases.COMPRESS] < clock.seconds[phases.COMPILE] == clock.delayed
    clock.to(phases.ENCODE)
    late(np.ones(3, np.float32))  # outside: the listener is gone
    clock.to(phases.EVALUATE)
    assert clock.seconds[phases.ENCODE] > 0 and clock.seconds[phases.COMPILE] == clock.delayed


def test_one_rank_is_advised_where_exchanges_take_longer_than_what_is_shared():
    """Two ranks compute for 3 and 2 s, rank 0 decodes for 1 s, and exchanges take 4 s."""
    first, second = [0.0] * 10, [0.0] * 10
    first[phases.COMPUTE], first[phases.DECODE], first[phases.COMMUNICATE] = 3.0, 1.0, 4.0
    second[phases.COMPUTE], second[phases.COMMUNICATE] = 2.0, 6.0
    assert rehearsal._alone([[first, first], [second, second]]) == [6.0, 6.0]
    assert rehearsal._alone(None) == []
    result = Rehearsal({}, 8e-3, 6e-3)
    assert result.advice(1) == ""
    assert result.advice(2) == "without mpirun it is faster: about 6 ms a round, 8 ms on 2 ranks"
    assert Rehearsal({}, 7e-3, 6e-3).advice(2) == ""
    assert "260 ms on 2 ranks" in Rehearsal({}, 0.26, 6e-3).advice(2)
    for rounds in (1, 20):  # the first round warms up, and advises nothing
        alone = rehearse(set_up(table(GD, rounds=rounds)))
        assert alone.alone_seconds > 0
        assert np.isinf(alone.alone_seconds) == (rounds == 1)


@some_of(2, rounds=[0, 1, 3, 9])
def test_a_rehearsal_leaves_no_trace(rounds, monkeypatch):
    """Neither in bits nor in points, nor in what the parts of the run hold."""
    columns = ["pi", "adaptive"]
    tables = table({"name": "diana", "stepsize": 0.1}, SMOOTH, rounds=rounds, columns=columns)

    def ended() -> tuple[dict, np.ndarray, dict]:
        setup, end = run_afresh(parse(tables))
        kept = {k: v.tolist() for k, v in end.columns.items() if not k.startswith("time_")}
        return kept, end.x, setup.star.ledger.totals

    with_one = ended()
    monkeypatch.setattr("mpisim.runs.loop.rehearse", lambda setup: None)
    np.testing.assert_equal(with_one, ended())


@pytest.mark.parametrize(("limit", "rows"), [(1e9, [0, 8]), (0.0, [0])])
def test_a_long_row_is_rehearsed_once(limit, rows, monkeypatch):
    """A row of a whole network takes minutes: a second one would only delay the first round."""
    result, setup = [], set_up(table(GD, rounds=9))
    monkeypatch.setattr("mpisim.runs.rehearsal.LONG", limit)
    before_row(monkeypatch, result.append)
    rehearse(setup)
    assert result == rows


def test_the_state_of_a_rehearsal_is_freed_with_it():
    """At once: until the garbage collector runs, a large state would be there twice."""

    def states():
        return sum(type(one) is RunState for one in gc.get_objects())

    setup = set_up(table(GD))
    gc.disable()
    try:
        before = states()
        rehearse(setup)
        assert states() == before >= 1
    finally:
        gc.enable()


MINE = {"name": "mine"}
MARINA = {"name": "marina", "stepsize": 0.1, "p": 0.5}
WITH_MINE = {
    "up": table(MARINA, MINE),
    "inside": table(MARINA, {"name": "rotated", "inner": MINE}),
    "down": table(GD | {"name": "ef21-p", "down": MINE}),
}


@pytest.mark.parametrize("where", WITH_MINE)
@pytest.mark.parametrize("mixin", [False, True])
def test_what_is_no_message_is_a_line(where, mixin):
    wrong = {"compress": lambda self, v, draw: v}
    bases = (type("Mixin", (), wrong), Identity) if mixin else (Identity,)
    mpisim.compressor("mine")(type("Mine", bases, {} if mixin else wrong))
    with pytest.raises(InputError, match=r"Mine: compress returned ndarray; allowed: a form"):
        rehearse(set_up(WITH_MINE[where]))


def estimate(self, x):
    return self.star.average(self.compress(self.oracle.gradients(x)))


def sets(**values):
    """A member that sets attributes, and returns a number or what `estimate` does."""

    def member(self, x, *_):
        for name, value in values.items():
            setattr(self, name, value)
        return estimate(self, x) if isinstance(self, mpisim.Estimator) else (1.0,)

    return member


def key(name, value):
    """The members for a key with this default."""
    return {"__annotations__": {name: type(value)}, name: value}


SEEN = {"seen": mpisim.Shared(), "start": sets(seen={1, 2})}
ROWS = {"seen": mpisim.PerWorker(), "start": sets(seen=np.zeros((2, 5)))}
NOT_SENT = {"start": lambda self, x: self.star.mean(self.oracle.gradients(x))}
NO_ROWS = {"load": lambda self, *_: vars(self).update(n=6, first=0, m=6, d=4, identical=False)}
TWICE = {"columns": 2 * [column("wide", "twice")]}
LOSS = {"columns": [column("loss", "twice")]}
THREE = {"columns": [("wide", "1", "meaning")]}
MISTAKES = [  # of a class, its members, and what the line says
    ("method", {"check": lambda self: vars(self).update(queue=[])}, "'queue' is a list.*Shared"),
    ("method", {"start": sets(h_i=np.zeros((6, 123)))}, r"'h_i' is set in a run.*PerWorker\(\)`"),
    ("method", key("share", 0.5) | {"start": sets(share=0.4)}, "'share' is set .* a key of its"),
    ("method", SEEN, r"Mine\.seen: a checkpoint cannot hold a set; all"),
    ("method", ROWS, r"seen: has shape \(2, 5\), but is PerWorker"),
    ("method", key("oracle", 1), r"Mine\.oracle: the run sets it; rename the key"),
    ("method", {"start": lambda self, x: np.add(x, 1, out=x)}, "start changes x in place; allowed"),
    (
        "method",
        {"start": lambda *_: None},
        r"returned NoneType; allowed: float64 of shape \(123,\)",
    ),
    ("method", {"start": lambda self, x: x[None]}, r"returned float64 of shape \(1, 123\); al"),
    ("method", {"start": lambda self, x: x.astype(np.float32)}, "returned float32 of shape"),
    ("method", NOT_SENT, r"^star: ndarray cannot be sent; allowed: what"),
    ("metric", {"values": lambda *_: 1.0}, r"returned 1\.0; .*: a tuple with .* its columns, wide"),
    ("metric", {"values": sets(seen=1.0)}, r"'seen' is set in a run.*`seen = Shared\("),
    ("metric", {"values": lambda *_: (1, 2)}, r"Mine: values returned \(1, 2\)"),
    ("metric", {"values": lambda self, x: (np.add(x, 1, out=x)[0],)}, "values changes x in place"),
    ("metric", {"passed": lambda self, x: np.add(x, 1, out=x)}, "Mine: passed changes x in place"),
    ("metric", {"values": lambda self, x: (x,)}, r"Mine: values returned \(array"),
    ("metric", {"values": lambda *_: ("a",)}, r"Mine: values returned \('a',\)"),
    ("metric", TWICE, "Mine: its column 'wide' is in the log"),
    ("metric", LOSS, "Mine: its column 'loss' is in the log already"),
    ("metric", THREE, r"columns has \('wide', '1', 'meaning'\); allowed: "),
    ("metric", {"columns": None}, "Mine: columns has None; allowed: "),
    ("problem", NO_ROWS, "^problem 'mine': load must set dtype, rows, identity$"),
    (
        "problem",
        {"losses_and_gradients": lambda *_: ([1.0], None)},
        r"\['list', 'NoneType'\]; allo",
    ),
    (
        "problem",
        {"losses_and_gradients": lambda self, x: (np.ones(6), x)},
        r"\[\(6,\), \(4,\)\]; al",
    ),
    ("problem", {"losses_and_gradients": lambda *_: None}, r"returned \['NoneType'\]; allowed"),
]
RIGHT = {  # the base of a class, and members without a mistake
    "method": (mpisim.Estimator, {"start": sets(), "estimate": estimate}),
    "metric": (mpisim.Metric, {"columns": [column("wide", "one")], "values": lambda *_: (1.0,)}),
    "problem": (Bowls, {"workers": 6}),
}


@pytest.mark.parametrize(("kind", "members", "message"), MISTAKES)
def test_a_mistake_in_a_class_is_a_line_before_round_0(kind, members, message, monkeypatch):
    monkeypatch.setattr("mpisim.runs.loop.Loop.run", die)
    base, right = RIGHT[kind]
    members = {name: one for name, one in (right | members).items() if one is not None}
    getattr(mpisim, kind)("mine")(type("Mine", (base,), members))
    tables = table(GD, columns=["mine"] if kind == "metric" else [])
    if kind == "method":
        tables = table(GD | MINE, {"name": "topk", "k": 9})
    with pytest.raises(InputError, match=message):
        run_tables(tables | ({"problem": MINE} if kind == "problem" else {}))
