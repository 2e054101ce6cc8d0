"""Tests of NAME: what `mpisim check` checks, and what is its own."""

from __future__ import annotations

from pathlib import Path

import mpisim
import numpy as np
from mpisim.wire import Precision

from FILE import CLASS

PLUGIN = Path(__file__).with_name("FILE.py")


def test_mpisim_check_passes():
    failed = [str(one) for one in mpisim.check(PLUGIN) if one.failed]
    assert not failed, "\n".join(failed)


def test_omega():
    precision = Precision(np.dtype("float32"), np.dtype("float64"))  # on the wire, in arithmetic
    assert CLASS(k=2).bind(d=10, n=1, precision=precision).omega == 4
