import os

import pytest

from mpisim.core.machine import usable_cores


@pytest.mark.parametrize(
    ("allowed", "there", "usable"), [({1, 3}, 8, {1, 3}), (None, 3, {0, 1, 2})]
)
def test_cores_that_a_process_may_use(allowed, there, usable, monkeypatch):
    """All of them where the system does not tell."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    if allowed:
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: allowed, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: there)
    assert usable_cores() == usable
