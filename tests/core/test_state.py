"""State that is found: what changes between two rounds, or a clear error."""

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.core.state import Stateful


class Part(Stateful):
    def __init__(self):
        self.constant, self.shift, self.rounds = 0.5, np.zeros(3), 0
        self.begin()


def test_state_is_what_was_set_and_every_array():
    part = Part()
    assert part.state().keys() == {"shift"}
    part.g, part.rounds = np.ones(3), part.rounds + 1
    part.shift += 1  # in place, too
    state = part.state()
    assert list(state) == ["g", "rounds", "shift"]
    other = Part()
    other.restore(state)
    assert np.array_equal(other.g, part.g) and other.rounds == 1 and other.shift[0] == 1


@pytest.mark.parametrize("value", [[1.0], {"a": 1}, "text", np.array([None]), object()])
def test_what_no_checkpoint_can_hold_is_said_by_name(value):
    part = Part()
    part.history = value
    with pytest.raises(InputError, match=r"Part: its attribute 'history' changes .* arrays and"):
        part.state()
