"""Functions that the C library computes in another way on another processor, in fixed operations.

glibc picks variants of exp, log, pow, sin by the processor, NumPy has vector variants of its own,
and the last bits differ. Sums, products, quotients and square roots are exact to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

LN2_HIGH = 6.93147180369123816490e-01  # 32 bits: its product with a small integer is exact
LN2_LOW = 1.90821492927058770002e-10
ROOT_2 = 1.4142135623730951
# Wichura (1988), algorithm AS 241: numerators and denominators, the highest power first.
CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0),
)  # fmt: skip
TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0),
)  # fmt: skip
FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip


@njit(cache=True, error_model="numpy")
def log_near_1(f):
    """log(1 + f) for sqrt(1/2) <= 1 + f <= sqrt(2), within 2 ulp.

    f - v (f - R), v = f / (2 + f), R the polynomial in v^2 of fdlibm's log (Sun, 1993).
    """
    v = f / (2 + f)
    u = v * v
    q = 1.818357216161805012e-01 + u * (1.531383769920937332e-01 + u * 1.479819860511658591e-01)
    q = 2.857142874366239149e-01 + u * (2.222219843214978396e-01 + u * q)
    q = 6.666666666666735130e-01 + u * (3.999999999940941908e-01 + u * q)
    return f - v * (f - u * q)


def log(x: np.ndarray) -> np.ndarray:
    """log x for finite x > 0, any shape, float64; within 2 ulp."""
    return _each(_logs, x)


def normal_quantiles(p: np.ndarray) -> np.ndarray:
    """The quantiles of the standard normal distribution, 0 < p < 1, any shape; to 2e-15 relative.

    Wichura (1988), algorithm AS 241, PPND16.
    """
    return _each(_normal_quantiles, p)


def exp(x: np.ndarray) -> np.ndarray:
    """e^x for -700 <= x <= 700, any shape, float64; within 4 ulp.

    2^k e^r with |r| <= log(2) / 2, and the Taylor polynomial of e^r of degree 13.
    """
    return _each(_exps, x)


def _each(kernel: Callable[[np.ndarray, np.ndarray], None], x: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(x, np.float64).reshape(-1)
    out = np.empty_like(flat)
    kernel(flat, out)
    return out.reshape(np.shape(x))


@njit(cache=True, error_model="numpy")
def _log(x):
    mantissa, exponent = math.frexp(x)
    if mantissa < ROOT_2 / 2:
        mantissa, exponent = 2 * mantissa, exponent - 1
    return exponent * LN2_HIGH + (log_near_1(mantissa - 1) + exponent * LN2_LOW)


@njit(cache=True)
def _logs(x, out):
    for i in range(x.size):
        out[i] = _log(x[i])


@njit(cache=True, error_model="numpy")
def _normal_quantiles(p, out):
    for i in range(p.size):  # all as if central, in a loop that becomes vector instructions
        q = p[i] - 0.5
        out[i] = q * _ratio(CENTRE, 0.180625 - q * q)
    for i in range(p.size):
        q = p[i] - 0.5
        if abs(q) > 0.425:
            far = math.sqrt(-_log(p[i] if q <= 0 else 1 - p[i]))
            tail = _ratio(TAIL, far - 1.6) if far <= 5 else _ratio(FAR_TAIL, far - 5)
            out[i] = -tail if q < 0 else tail


@njit(cache=True, error_model="numpy")
def _ratio(polynomials, r):
    """One polynomial over the other."""
    above, below = polynomials[0][0], polynomials[1][0]
    for j in range(1, len(polynomials[0])):
        above, below = above * r + polynomials[0][j], below * r + polynomials[1][j]
    return above / below


@njit(cache=True, error_model="numpy")
def _exps(x, out):
    exponents = out.view(np.int64)
    for i in range(x.size):  # vector instructions: no call of round or ldexp
        k = np.rint(x[i] / (LN2_HIGH + LN2_LOW))
        r = (x[i] - k * LN2_HIGH) - k * LN2_LOW
        total = 1.0
        for j in range(13, 0, -1):
            total = 1 + r / j * total
        out[i] = total
    for i in range(x.size):
        exponents[i] += np.int64(np.rint(x[i] / (LN2_HIGH + LN2_LOW))) << 52


@njit(cache=True)
def power(base: float, exponent: int) -> float:
    """base^exponent for an integer >= 0, by squaring."""
    base, result = float(base), 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


def sine(angle: float) -> float:
    """sin(angle) for 0 <= angle <= pi / 4, by its series."""
    square, total = angle * angle, 1.0
    for k in range(20, 0, -2):
        total = 1 - square / (k * (k + 1)) * total
    return angle * total
