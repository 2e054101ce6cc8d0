"""What a network's modules draw from is seeded for every pass."""

import traceback

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mpisim.problems.torch import network as networks  # noqa: E402
from tests.problems.torch.support import network  # noqa: E402
from tests.problems.torch.test_problem import CD_ADAM, SIGN, load  # noqa: E402


def test_dropout_is_that_of_a_manual_seed():
    for number in (0, 7, 2**63 - 1):
        torch.manual_seed(number)
        expected = torch.nn.functional.dropout(torch.ones(50))
        torch.manual_seed(1)
        networks.seed_modules(torch.device("cpu"), number)
        assert torch.equal(torch.nn.functional.dropout(torch.ones(50)), expected)


def test_no_traceback_is_formatted_in_a_pass(monkeypatch):
    """`torch.manual_seed` formats some, for accelerators that have not started: a millisecond."""
    problem = load(network(CD_ADAM, SIGN))
    x, batch = problem.initial_point(), np.tile(np.arange(4), (4, 1))
    formatted = []
    monkeypatch.setattr(traceback, "format_stack", lambda *_: formatted.append(1) or [])
    problem.batch_gradients(x, batch)
    assert not formatted
