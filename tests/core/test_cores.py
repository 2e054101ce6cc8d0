import os

import pytest

from mpisim.core.machine import usable_cores


@pytest.mark.parametrize(("allowed", "usable"), [({1, 3}, {1, 3}), (None, {0, 1, 2})])
def test_cores_that_a_process_may_use(allowed, usable, monkeypatch):
    """All of them where the system does not tell."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    if allowed:
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: allowed, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert usable_cores() == usable
