"""Steps of optimizers of one's own: what they may keep, and what they may not change."""

import re

import numpy as np
import pytest

import mpisim
from tests.helpers import run_tables, table

RANDK = {"name": "randk", "k": 5}


def in_place(x, g, gamma):
    x -= gamma * g
    return x


def in_place_of_a_view(x, g, gamma):
    x[3:] *= 0.9
    return x - gamma * g


def in_place_of_g(x, g, gamma):
    g *= gamma
    return x - g


IN_PLACE = "changes x or g in place; allowed: a new array for x"
WRONG = [
    *((IN_PLACE, step) for step in (in_place, in_place_of_a_view, in_place_of_g)),
    ("returned NoneType; allowed: float64 of shape (30,), as x", lambda x, g, gamma: None),
    ("returned list; allowed:", lambda x, g, gamma: x.tolist()),
    ("returned float64 of shape (30, 1); allowed:", lambda x, g, gamma: x[:, None]),
    ("returned complex128 of shape (30,); allowed:", lambda x, g, gamma: x + 0j),
]


@pytest.mark.parametrize(("line", "step"), WRONG)
def test_a_step_that_is_wrong_is_refused(line, step):
    """Lazy gradients, as MARINA's on the quadratic, keep x^k."""
    members = {"step": lambda self, *arguments: step(*arguments)}
    mpisim.optimizer("mine")(type("Mine", (mpisim.Optimizer,), members))
    method = {"estimator": "marina", "p": 0.3, "optimizer": "mine", "stepsize": 0.1}
    tables = table(method, RANDK, rounds=9)
    tables["problem"] = {"name": "quadratic", "workers": 6, "dimension": 30, "noise": 0.3}
    with pytest.raises(mpisim.InputError, match=re.escape(f".Mine: step {line}")):
        run_tables(tables)


def with_a_buffer(self, x, g, gamma):
    """It keeps x, and overwrites it a round later; it returns the same array each time."""
    if self.y is None:
        self.y, self.last = x.copy(), x.copy()
    self.last -= x
    self.last *= -0.5
    self.y[:] = x - gamma * g + self.last
    self.last = x
    return self.y


def without_a_buffer(self, x, g, gamma):
    last = x if self.last is None else self.last
    self.last = x.copy()
    return x - gamma * g - 0.5 * (last - x)


@pytest.mark.parametrize("estimator", [{"p": 0.3}, {"estimator": "vr-diana", "batch": 5, "p": 0.2}])
def test_a_step_may_keep_what_it_gets(estimator):
    """And x^{k+1} may be the same array each time. What others keep of x does not change."""

    def check(self):
        self.y, self.last = None, None

    losses = []
    for step in (with_a_buffer, without_a_buffer):
        members = {name: mpisim.Shared() for name in ("y", "last")} | {"check": check}
        kind = type(step.__name__, (mpisim.Optimizer,), members | {"step": step})
        mpisim.optimizer(step.__name__)(kind)
        method = {"estimator": "marina", "optimizer": step.__name__, "stepsize": 0.1} | estimator
        losses.append(run_tables(table(method, RANDK), keep=True).columns["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-12)
    assert len(np.unique(losses[0])) > 2
