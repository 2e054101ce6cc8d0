"""Tests of NAME: what `mpisim check` checks, and what is its own."""

from __future__ import annotations

from pathlib import Path

import mpisim
import numpy as np

import FILE  # noqa: F401 - makes the method known

PLUGIN = Path(__file__).with_name("FILE.py")


def test_mpisim_check_passes():
    failed = [str(one) for one in mpisim.check(PLUGIN) if one.failed]
    assert not failed, "\n".join(failed)


def losses(method):
    tables = {
        "problem": {"name": "quadratic", "dimension": 10, "workers": 4, "noise": 0.3},
        "method": {"name": method, "stepsize": 0.1},
        "compressor": {"name": "identity"},
        "run": {"rounds": 20, "wire": "float64"},
    }
    return mpisim.run(mpisim.Experiment.from_dict(tables)).rows["loss"]


def test_without_compression_it_is_gradient_descent():
    assert np.allclose(losses("NAME"), losses("gd"))
