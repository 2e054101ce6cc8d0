"""What the studies' tests share: runs of one seed, which the judge itself refuses."""

import numpy as np
import pytest

from mpisim.analysis.claims import judging
from mpisim.analysis.study import complete_logs, tuning


@pytest.fixture(autouse=True)
def few_seeds(monkeypatch, request):
    """One seed decides, and of several all must agree: these tests are about what is compared."""
    if "test_results" in request.node.nodeid:
        return  # pages of the record
    monkeypatch.setattr(judging, "FEWEST", 1)
    monkeypatch.setattr(judging, "interval", lambda ratios: (np.min(ratios), np.max(ratios)))


@pytest.fixture
def any_grid(monkeypatch):
    """A best step at an edge of its grid decides, too."""
    monkeypatch.setattr(tuning, "edge_of", lambda setting, best, tried: "")


ROUNDS = np.arange(51)


@pytest.fixture
def by_step(make_log, tmp_path):
    """Writes the logs of {method: {step: (rate of |grad f|^2, rate of f)}}, and no others."""

    def make(rates, compressor='name = "randk"\nk = 10', first=1.0, columns=None):
        for before in tmp_path.glob("*.h5"):
            before.unlink()
        for method, steps in rates.items():
            for step, (gradient, loss) in steps.items():
                both = {"grad_norm_sq": np.exp(-gradient * ROUNDS)}
                both |= {"loss": first * np.exp(-loss * ROUNDS)} | (columns or {}).get(method, {})
                how = {"stepsize": step, "columns": both, "attrs": {"stepsize": step}}
                make_log(method, compressor, **how)
        return complete_logs(tmp_path)[0]

    return make
