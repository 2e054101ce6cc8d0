"""What the studies' tests share: runs of one seed, which the judge itself refuses."""

import numpy as np
import pytest

from mpisim.analysis.claims import judging
from mpisim.analysis.study import tuning


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
