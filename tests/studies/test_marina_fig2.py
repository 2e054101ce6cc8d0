"""MARINA, Figure 2, from logs made by hand: no PyTorch is needed."""

import h5py
import numpy as np
import pytest

from mpisim.analysis.study import complete_logs
from run.marina import fig2

K = 0.0085547
ROUNDS = np.arange(51)
# By method and step: the rate of |grad f|^2, and that of the loss. The best steps differ.
RATES = {
    "vr-marina": {0.01: (0.05, 0.005), 0.1: (0.30, 0.010), 1.0: (0.02, 0.002)},
    "vr-diana": {0.01: (0.05, 0.005), 0.1: (0.10, 0.030), 1.0: (0.02, 0.002)},
}
CLAIM = "VR-MARINA needs significantly fewer {} than VR-DIANA, by {}"


@pytest.fixture
def logs(make_log):
    """A function that writes the logs of ``rates``, or of those that a test replaces."""

    def make(**changed):
        for method, steps in (RATES | changed).items():
            for step, (gradient, loss) in steps.items():
                columns = {"grad_norm_sq": np.exp(-gradient * ROUNDS)}
                columns |= {"loss": np.exp(-loss * ROUNDS)}
                table = f'name = "randk"\nk = {K}'
                path = make_log(method, table, stepsize=step, columns=columns)
                with h5py.File(path, "a") as file:
                    file["workers/rows"] = np.full(5, 200)
                    file.attrs["stepsize"] = step
        return complete_logs(path.parent)[0]

    return make


def judged(logs):
    """{claim: the only evidence}."""
    return {claim.claim: claim.evidence[0] for claim in fig2.claims(logs)}


def test_the_gradient_comes_first_and_each_accuracy_has_its_step(logs):
    found = judged(logs())
    names = [
        CLAIM.format(c, y) for y in ("|grad f|^2", "training loss") for c in fig2.COSTS.values()
    ]
    assert list(found) == names
    verdicts = [one.verdict for one in found.values()]
    assert verdicts == ["holds", "holds", "does not hold", "does not hold"]
    first = found[CLAIM.format("sample gradients", "|grad f|^2")].numbers
    # exp(-0.3 k) is 0.01 in round 16, exp(-0.1 k) in round 47; both have seen k + 1 batches
    assert first["target"] <= 0.01 and first["steps"] == [0.1, 0.1]
    assert first["by_target"]["0.01"]["ratios"] == pytest.approx([48 / 17])
