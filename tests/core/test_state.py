"""State is declared, and nothing else changes while a run is on."""

import dataclasses
import itertools
from array import array
from collections import deque

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.core.state import AtServer, PerWorker, Shared, Stateful


class Part(Stateful):
    shift = PerWorker("a shift")
    rounds = Shared()

    def check(self):
        self.rounds = 0


class More(Part):
    mean = AtServer("of the shifts")


def test_a_declaration_is_no_value():
    assert {n: d.place for n, d in More.declared.items()} == {
        "shift": "PerWorker",
        "rounds": "Shared",
        "mean": "AtServer",
    }
    assert More.declared["mean"].meaning == "of the shifts" and "mean" not in Part.declared
    with pytest.raises(AttributeError):
        _ = More().mean
    part = More()._bind()
    with pytest.raises(AttributeError):
        _ = part.shift


def test_state_is_what_is_declared_and_set_whatever_changed_it():
    part = More()._bind()
    assert part.state() == {"rounds": 0}
    part.shift, part.rounds = np.zeros(3), part.rounds + 1
    part.shift += 1
    state = part.state()
    assert list(state) == ["rounds", "shift"] and state["shift"][0] == 1
    other = More()._bind()
    other.mean = np.ones(3)
    other.restore(state)
    assert other.state().keys() == state.keys() and other.rounds == 1
    assert part._bind().state() == {"rounds": 0}  # a copy has no state of the run before it


CHANGEABLE = [[], {}, set(), bytearray(), deque(), array("i"), itertools.count(), (1, [2])]


@pytest.mark.parametrize("value", CHANGEABLE, ids=lambda v: type(v).__name__)
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

    part = Constants()._bind()
    for constant in (part.rows, part.pair[0]):
        with pytest.raises(ValueError, match="read-only"):
            constant += 1
    rows += 1


def test_a_list_of_a_table_is_a_tuple_in_a_run():
    """The spec's list would be changed for every run of the experiment, and in no checkpoint."""
    made = dataclasses.make_dataclass("Weighted", [("weights", list)], bases=(Stateful,))(
        [1.0, [2]]
    )
    part = made._bind()
    assert part.weights == (1.0, (2,)) and made.weights == [1.0, [2]]
    with pytest.raises(TypeError):
        part.weights[0] *= 0.9


def test_a_list_of_the_class_is_refused():
    """All runs, and their rehearsals, would share it."""
    with pytest.raises(
        InputError, match=r"Wrong\.kept: is a list, which all .*`kept = Shared\(\)`"
    ):

        class Wrong(Stateful):
            columns = [("loss", float)]  # noqa: RUF012 - a constant
            kept = []  # noqa: RUF012
