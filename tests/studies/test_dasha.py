"""DASHA's figures, from logs made by hand."""

import h5py
import numpy as np
import pytest

from mpisim.analysis.study import complete_logs
from run.dasha import figures
from run.dasha.compared import BITS as SENT
from run.dasha.compared import best, up_to

ROUNDS = np.arange(51)
# By step: the rate of |grad f|^2, and that of f. The largest ends on a plateau of f: its gradient
# vanishes first.
MARINA = {4.0: (0.05, 0.01), 8.0: (0.10, 0.02), 16.0: (0.22, 0.04), 64.0: (0.9, 0.0)}
DASHA = {4.0: (0.05, 0.01), 8.0: (0.20, 0.03), 16.0: (0.10, 0.02), 64.0: (0.8, 0.0)}

BITS = 5 * 320 * np.maximum(ROUNDS - 1, 0)


@pytest.fixture
def logs(make_log, tmp_path):
    """A function that writes the logs of both methods, DASHA's with ``bits_up``, and no others."""

    def make(bits_up=BITS):
        for before in tmp_path.glob("*.h5"):
            before.unlink()
        for method, steps in (("marina", MARINA), ("dasha", DASHA)):
            for step, (gradient, loss) in steps.items():
                columns = {"grad_norm_sq": np.exp(-gradient * ROUNDS)}
                columns |= {"loss": 0.25 * np.exp(-loss * ROUNDS)}
                columns |= {"bits_up": bits_up} if method == "dasha" else {}
                path = make_log(method, stepsize=step, columns=columns)
                with h5py.File(path, "a") as file:
                    file["workers/rows"] = np.full(5, 200)
                    file.attrs["stepsize"] = step
        return complete_logs(path.parent)[0]

    return make


def test_the_best_step_is_the_one_by_f(logs):
    """With the largest step |grad f|^2 vanishes first, and f stays at its start."""
    result = best(logs(), SENT)
    fastest = {"dasha": DASHA, "marina": MARINA}
    wanted = {name: max(of, key=lambda step: of[step][1]) for name, of in fastest.items()}
    assert {key[1]: one.step for key, one in result.items()} == wanted == {"dasha": 8, "marina": 16}
    assert not any(one.edge for one in result.values())
    published = best(up_to(8.0, logs()), SENT)
    assert all(one.edge.endswith("8 is the largest step") for one in published.values())


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
