"""No random word is used twice in a run: not by two messages, workers, purposes or coins."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from mpisim.comm import network
from mpisim.core import rng
from mpisim.core.numerics import philox
from mpisim.methods.method_table import METHODS
from tests.compressors.cases import CASES
from tests.helpers import run_tables, sampled, table, without_rehearsal
from tests.resumes import KEYS, SMOOTH

DEALT = {"name": "permk", "groups": 2}
COMPOSED = {"name": "compose", "outer": DEALT, "inner": {"name": "natural"}}
RANDK, PP_MARINA = {"name": "randk", "k": 4}, {"name": "pp-marina", "participants": 6, "p": 0.2}
BOTH = {"name": "ef", "direction": "both"}
DEALING = {
    "compressed-scaffnew": [DEALT],
    "locodl": [RANDK],
    "powersgd": [{}],
    "tamuna": [{"name": "pattern", "s": 2}],
}
# to decode is to draw a direction of "spherical" again
TABLES = [case.table for case in CASES if case.table["name"] != "spherical"]
FITTED = [SMOOTH, {"name": "smooth", "inner": {"name": "rand-tau-plus"}}]
PAIRS = {
    "each compressor, clients drawn twice": [(PP_MARINA, spec) for spec in TABLES + FITTED],
    "each compressor, in both directions": [(BOTH, spec) for spec in TABLES],
    "each method": [
        ({"name": name} | KEYS.get(name, {}), compressor)
        for name in METHODS
        if name != "gd"
        for compressor in DEALING.get(name, [RANDK, COMPOSED])
    ],
}


@pytest.fixture
def drawn(monkeypatch):
    """(key and upper words of the counter, first step, the step after the last) of each draw."""
    result = []

    def words(seed, purpose, round, message, repetition, first, workers, count):
        steps = philox.steps_for(count)
        address = seed, purpose, round, message, repetition
        result.append((address, first * steps, (first + workers) * steps))
        return philox.words(*address, first, workers, count)

    def words_of(seed, purpose, round, message, workers, count):
        for t, worker in enumerate(workers.tolist()):
            again = workers[:t].tolist().count(worker)
            words(seed, purpose, round, message, again, worker, 1, count)
        return philox.words_of(seed, purpose, round, message, workers, count)

    def uniform(*address):
        return (words(*address, 0, 0, 1, 1)[0, 0] >> np.uint64(11)) * 2.0**-53

    def generator(self, purpose, round=0):
        every = (self.seed, rng.purpose_key(purpose), round, 0, 0), 0, 1 << 62
        if every not in result:  # a data set may be shuffled again, when it is read again
            result.append(every)
        return full(self, purpose, round)

    kernels = SimpleNamespace(words=words, words_of=words_of, uniform=uniform)
    monkeypatch.setattr(rng, "philox", kernels)
    monkeypatch.setattr(network, "philox", kernels)
    full = rng.Streams.generator
    monkeypatch.setattr(rng.Streams, "generator", generator)
    without_rehearsal(monkeypatch)
    return result


def overlaps(drawn) -> list:
    """Pairs of draws that have a word in common."""
    every = sorted(draw for draw in drawn if draw[1] < draw[2])
    return [
        pair for pair in pairwise(every) if pair[0][0] == pair[1][0] and pair[1][1] < pair[0][2]
    ]


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_no_two_draws_of_a_run_overlap(pairs, drawn):
    for method, compressor in sampled(pairs, 12):
        drawn.clear()
        problem = {"name": "logistic", "split": "shuffled"}
        run_tables(table(method | {"stepsize": 0.05}, compressor, problem=problem, rounds=5))
        assert drawn and not overlaps(drawn), (method, compressor)


@pytest.mark.parametrize(("first", "second"), [((0, 6), (2, 1)), ((1, 1), (1, 1))])
def test_a_repetition_would_be_noticed(first, second, drawn):
    """The same set of RandK for two messages of a round."""
    for workers in (first, second):
        rng.Draw(rng.Streams(1), "up", 3, *workers).subsets(9, 4)
    assert len(overlaps(drawn)) == 1
