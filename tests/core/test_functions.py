"""Own functions against NumPy's in extended precision, and SciPy's."""

import numpy as np
from scipy.special import ndtri

from mpisim.core.numerics.functions import log, normal_quantiles
from mpisim.problems.loss_kernels import LOGISTIC, LOSS, phi, sigmoid

RNG = np.random.default_rng(1)


def ulps(found, exact):
    """The largest error, in units of the last place of the exact value."""
    return np.max(np.abs(found - exact) / np.spacing(np.abs(exact).astype(np.float64)))


def test_log():
    x = np.concatenate([RNG.random(50_000), np.exp(100 * RNG.normal(size=50_000)), [5e-324, 2.0]])
    x = np.concatenate([x[x > 0], 1 + 1e-9 * RNG.normal(size=1000)])
    assert ulps(log(x), np.log(x.astype(np.longdouble))) < 2
    assert log(np.ones(1))[0] == 0


def test_normal_quantiles():
    p = np.concatenate([RNG.random(50_000), 2.0 ** -np.arange(2, 60), 1 - 2.0 ** -np.arange(2, 53)])
    np.testing.assert_allclose(normal_quantiles(p), ndtri(p), rtol=2e-15)
    assert normal_quantiles(np.array([0.5]))[0] == 0


def test_sigmoid_and_logistic_loss():
    z = np.concatenate([np.linspace(-750, 750, 30_001), [0.0, 1e-300, 1e300, -1e300]])
    with np.errstate(over="ignore"):
        exact = 1 / (1 + np.exp(-z.astype(np.longdouble)))
    normal = z >= -708  # below, the result is 0
    assert ulps(sigmoid(z)[normal], exact[normal]) < 4 and not sigmoid(z)[~normal].any()
    assert np.isnan(sigmoid(np.array([np.nan]))).all()
    n = z.size
    w, loss, t, p, s = np.empty((5, n))
    phi(LOGISTIC, n, z, np.ones(n), w, loss, LOSS, t, p, s)
    usual = np.abs(z) < 700
    exact = np.log1p(np.exp(-np.abs(z).astype(np.longdouble))) + np.maximum(-z, 0)
    assert ulps(loss[usual], exact[usual]) < 4
