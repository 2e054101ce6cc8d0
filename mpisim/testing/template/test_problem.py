"""Tests of NAME: what `mpisim check` checks, and what is its own."""

from __future__ import annotations

from pathlib import Path

import mpisim
import numpy as np

from FILE import CLASS

PLUGIN = Path(__file__).with_name("FILE.py")


def test_mpisim_check_passes():
    failed = [str(one) for one in mpisim.check(PLUGIN) if one.failed]
    assert not failed, "\n".join(failed)


def test_one_sample():
    one = CLASS(dimension=1, samples=1).loaded(n=1, first=0, count=1, seed=3, dtype=np.float64)
    a, b = one.a[0, 0, 0], one.b[0, 0]
    assert np.isclose(one.losses(np.array([b / a]))[0], 0)
    assert np.isclose(one.losses(np.zeros(1))[0], np.log1p(b**2))
