import os

from mpisim.core.machine import usable_cores


def test_cores_that_a_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 3}, raising=False)
    assert usable_cores() == {1, 3}


def test_all_cores_where_the_system_does_not_tell(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert usable_cores() == {0, 1, 2}
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == {0}
