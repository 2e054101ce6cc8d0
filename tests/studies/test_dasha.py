"""DASHA's figures, from logs made by hand."""

import numpy as np
import pytest

from run.dasha import figures
from run.dasha.figures import BITS as SENT
from run.dasha.figures import best, up_to
from tests.studies.conftest import ROUNDS

# By step: the rate of |grad f|^2, and that of f. The largest ends on a plateau of f: its gradient
# vanishes first.
RATES = {
    "marina": {4.0: (0.05, 0.01), 8.0: (0.10, 0.02), 16.0: (0.22, 0.04), 64.0: (0.9, 0.0)},
    "dasha": {4.0: (0.05, 0.01), 8.0: (0.20, 0.03), 16.0: (0.10, 0.02), 64.0: (0.8, 0.0)},
}

BITS = 5 * 320 * np.maximum(ROUNDS - 1, 0)


@pytest.fixture
def logs(by_step):
    """A function that writes the logs of both methods, DASHA's with ``bits_up``."""

    def make(bits_up=BITS):
        return by_step(RATES, first=0.25, columns={"dasha": {"bits_up": bits_up}})

    return make


def test_the_best_step_is_the_one_by_f(logs):
    """With the largest step |grad f|^2 vanishes first, and f stays at its start."""
    result = best(logs(), SENT)
    wanted = {name: max(of, key=lambda step: of[step][1]) for name, of in RATES.items()}
    assert {key[1]: one.step for key, one in result.items()} == wanted == {"dasha": 8, "marina": 16}
    assert not any(one.edge for one in result.values())
    published = best(up_to(8.0, logs()), SENT)
    assert all(one.edge.endswith("8 is the largest step") for one in published.values())


def test_the_target_is_the_deepest_that_all_methods_reach(by_step):
    """In 50 rounds f falls to exp(-5), or to exp(-15), of its start."""
    result = best(by_step({"marina": {8.0: (0.1, 0.1)}, "dasha": {8.0: (0.3, 0.3)}}), SENT)
    assert [one.target for one in result.values()] == [0.01, 0.01]


def test_claims_of_figure_1_on_any_grid(logs, any_grid):
    fewer, any_step, _ = figures.fig1(logs())
    # "Significant" is 1.5 times, and with any step DASHA needs less, but not so much less.
    assert (fewer.verdict, any_step.verdict) == ("holds", "does not hold")
    assert any_step.evidence[0].numbers["median"] > 1


@pytest.mark.parametrize("extra", [1, 5 * 32 * 112])
def test_an_uncompressed_round_is_seen(logs, extra):
    """A whole vector in round 30, or a bit more than K numbers; g^0 does not count."""
    bits = 5 * 320 * ROUNDS + 5 * 4000 * (ROUNDS > 0)
    *_, compressed = figures.fig1(logs(bits))
    assert compressed.verdict == "holds"
    *_, compressed = figures.fig1(logs(bits + extra * (ROUNDS > 30)))
    assert compressed.verdict == "does not hold"
