"""Theorems 4 and 5 of the PermK paper, for workers that draw together."""

import dataclasses

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.theory import stepsizes as steps
from mpisim.theory.compression import Groups
from mpisim.theory.setting import GroupConstants
from tests.theory.support import setting


def together(A, B, L_pm=3.0, **keys):
    """L_- = 4, L_+ = 5."""
    of = setting(1.0, **keys)
    c = dataclasses.replace(of.c, L_pm=L_pm)
    return dataclasses.replace(of, A=A, B=B, correlated=True, c=c)


def test_by_hand():
    s = together(1.0, 1.0)
    assert steps.marina(s, 0.5).gamma == 1 / (4 + 3)  # (1-p)/p = 1
    assert steps.marina(s, 0.2).gamma == 1 / (4 + 2 * 3)
    assert steps.marina(together(1.0, 0.75, L_pm=0.0), 0.5).gamma == 1 / (4 + 2.5)
    assert steps.marina(together(4.0, 0.0), 0.5).gamma == 1 / (4 + 10)
    assert steps.marina(together(1.0, 1.0, L_pm=0.0), 0.001).gamma == 1 / 4  # as gradient descent
    assert "Theorem 4" in steps.marina(s, 0.5).source


def test_by_hand_under_pl():
    s = together(1.0, 1.0, condition="PL", mu=0.001)
    assert steps.marina(s, 1 / 3).gamma == pytest.approx(1 / (4 + 3 * 2), rel=1e-14)
    assert "Theorem 5" in steps.marina(s, 1 / 3).source
    assert steps.marina(together(1.0, 1.0, condition="PL", mu=4.0), 0.25).gamma == 0.25 / 8


def test_theorem_4_for_independent_workers_on_request():
    """omega / n and L_+ under the root, L_- before it; L_± does not count."""
    s = setting(8.0)  # n = 2, L_- = 4, L_+ = 5
    assert steps.marina(s, 0.5, "permk").gamma == pytest.approx(1 / (4 + 5 * 2), rel=1e-15)
    assert steps.marina(s, 0.5).gamma == pytest.approx(1 / (5 + 5 * 2), rel=1e-15)
    assert "Theorem 4" in steps.marina(s, 0.5, "permk").source
    under = setting(8.0, condition="PL", mu=0.001)
    assert steps.marina(under, 1 / 3, "permk").gamma == pytest.approx(1 / (4 + 5 * 4), rel=1e-14)
    assert "Theorem 5" in steps.marina(under, 1 / 3, "permk").source
    with pytest.raises(InputError, match="unbiased compressors only"):
        steps.marina(setting(alpha=0.5), 0.5, "permk")


def grouped(A, B, L_plus, L_pm, label, **keys):
    groups = GroupConstants(Groups(*map(np.array, (label, A, B))), *map(np.array, (L_plus, L_pm)))
    return dataclasses.replace(together(1.0, 1.0, L_pm=9.0, **keys), groups=groups)


def test_theorems_10_and_11_by_hand():
    three = [0, 0, 1]  # shares 2/3 and 1/3
    s = grouped([1.0, 3.0], [1.0, 2.0], [5.0, 6.0], [3.0, 0.0], three)
    assert s.groups.L_hat_sq == pytest.approx(4 / 9 * 9 + 1 / 9 * 36, rel=1e-15)
    assert steps.marina(s, 0.5).gamma == pytest.approx(1 / (4 + 8**0.5), rel=1e-15)
    assert "Theorem 10" in steps.marina(s, 0.5).source
    under = dataclasses.replace(s, condition="PL", c=dataclasses.replace(s.c, mu=1e-3))
    assert steps.marina(under, 0.5).gamma == pytest.approx(1 / (4 + 4), rel=1e-15)
    assert "Theorem 11" in steps.marina(under, 0.5).source
    worse = grouped([1.0, 1.0], [1.0, 1.0], [5.0, 6.0], [20.0, 20.0], three)
    assert "Theorem 4" in steps.marina(worse, 0.5).source  # L_± = 9 of all is less


@pytest.mark.parametrize(
    "step",
    [
        steps.dcgd,
        steps.diana_convex,
        steps.diana_nonconvex,
        lambda s: steps.vr_diana(s, 3),
        lambda s: steps.vr_marina(s, 0.5, 1),
        lambda s: steps.pp_marina(s, 0.5, 1),
    ],
)
def test_theorems_for_independent_workers_say_so(step):
    with pytest.raises(InputError, match="compress independently of each other only"):
        step(together(1.0, 1.0))
