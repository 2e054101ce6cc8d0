"""State is declared, and nothing else changes while a run is on."""

import dataclasses
import enum
import itertools
import logging
import math
import operator
import re
from array import array
from collections import deque
from functools import partial
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Literal, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp

from mpisim.core.errors import InputError
from mpisim.core.registry import Spec
from mpisim.core.state import AtServer, PerWorker, Shared, Stateful


class Part(Stateful):
    shift = PerWorker("a shift")
    rounds = Shared()

    def check(self):
        self.rounds = 0


class More(Part):
    mean = AtServer("of the shifts")


def test_state_is_what_is_declared_and_set_whatever_changed_it():
    assert [*Part.declared, "mean"] == [*More.declared] == ["shift", "rounds", "mean"]
    part = More()._bind()
    assert part.state() == {"rounds": 0}
    with pytest.raises(AttributeError):
        _ = part.shift
    part.shift, part.rounds = np.zeros(3), part.rounds + 1
    part.shift += 1
    state = part.state()
    assert list(state) == ["rounds", "shift"] and state["shift"][0] == 1
    other = More()._bind()
    other.mean = np.ones(3)
    other.restore(state)
    assert other.state().keys() == state.keys() and other.rounds == 1
    assert part._bind().state() == {"rounds": 0}  # a copy has no state of the run before it


class Triple(tuple):
    """With methods of its own, and no `_make`."""


class Pair(NamedTuple):
    one: object
    other: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object


def counter():
    seen = []
    return lambda: seen.append(1)


def with_default(seen=[]):  # noqa: B006
    seen.append(1)


CHANGEABLE = [[], {}, set(), bytearray(), deque(), array("i"), itertools.count(), (1, [2])]
CHANGEABLE += [SimpleNamespace(), np.random.default_rng(0), MappingProxyType({1: []}), [].append]
CHANGEABLE += [partial(max, []), partial(max, np.zeros(2))]
CHANGEABLE += [np.array([None]), Pair(1, [2]), Frozen([])]
OF_A_PART = [counter(), with_default, More()._bind(), More()._bind().state, np.zeros(2).fill]


@pytest.mark.parametrize("value", CHANGEABLE + OF_A_PART, ids=lambda v: type(v).__name__)
def test_what_a_run_could_change_is_declared(value):
    class Kept(Stateful):
        def check(self):
            self.kept = value

    with pytest.raises(InputError, match=r"Kept: its attribute 'kept' is a .*`kept = Shared\(\)`"):
        Kept()._bind()


def test_constants_are_read_only_and_what_they_were_made_of_is_not():
    rows = np.zeros(3)

    class Constants(Stateful):
        def check(self):
            self.rows, self.pair, self.name = rows, (np.ones(2), "text"), "name"
            self.named, self.frozen = Pair(1, np.ones(2)), Frozen(np.ones(2))
            self.sparse = csr_array(np.eye(2))

    part = Constants()._bind()
    assert type(part.named) is Pair
    read_only = part.rows, part.pair[0], part.named.other, part.frozen.value, part.sparse.data
    for constant in read_only:
        with pytest.raises(ValueError, match="read-only"):
            constant += 1
    rows += 1


Colour = enum.Enum("Colour", "RED")
FIXED = [True, None, 1j, np.float32(1), np.dtype("f4"), b"", Colour.RED, Path("x"), range(3)]
FIXED += [Spec(), slice(2), frozenset({1}), float, math, math.sqrt, np.sqrt, counter]
FIXED += [np.sum, re.compile("a"), operator.itemgetter(0), partial(max, 1), list[int], int | str]
FIXED += [Literal["a"], logging.getLogger("a"), logsumexp, Triple("ab")]
FIXED += [MappingProxyType({"a": (1,)})]


@pytest.mark.parametrize("value", FIXED, ids=lambda v: type(v).__name__)
def test_what_nobody_can_change_is_not_declared(value):
    class Kept(Stateful):
        kept = value

        def check(self):
            self.own, self.link, self.up = value, self.star, self.star.append

    link = []
    part = Kept()._bind(star=link)
    assert part.own == vars(Kept)["kept"] == value
    assert part.link is link and part.up == link.append


def test_a_list_of_a_table_is_a_tuple_in_a_run():
    """The spec's list would be changed for every run of the experiment, and in no checkpoint."""
    made = dataclasses.make_dataclass("Weighted", [("weights", list)], bases=(Stateful,))([])
    for given, kept, key in (([1.0, [2]], (1.0, (2,)), 0), ({"a": [1]}, {"a": (1,)}, "a")):
        made.weights = given
        part = made._bind()
        assert part.weights == kept and made.weights is given
        with pytest.raises(TypeError):
            part.weights[key] = 2


@pytest.mark.parametrize("value", CHANGEABLE, ids=lambda v: type(v).__name__)
def test_what_a_run_could_change_is_not_of_the_class(value):
    """All runs, and their rehearsals, would share it."""
    with pytest.raises(InputError, match=r"Wrong\.kept: is a .*, which all .*`kept = Shared\(\)`"):

        class Wrong(Stateful):
            columns = [("loss", float)]  # noqa: RUF012 - a constant
            kept = value


def test_a_run_does_not_set_attributes_of_the_class():
    class Counts(Part):
        count = 0
        table = np.zeros(2)

    part = Counts()._bind()
    with pytest.raises(ValueError, match="read-only"):
        part.table[0] = 1
    assert part.state() == {"rounds": 0} and Counts.__annotations__ == {}  # which sets it
    assert part.state() == {"rounds": 0} and Counts().state() == {}
    Counts.count += 1
    text = r"'count' is set in a run, for the whole class, but is .*`count = Shared\(\)`"
    with pytest.raises(InputError, match=text):
        part.state()
    assert Counts()._bind().state() == {"rounds": 0}
