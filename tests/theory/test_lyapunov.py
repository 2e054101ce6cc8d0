"""The theorems' guarantees hold at their step sizes, and break at a few times as much."""

from functools import partial
from math import sqrt

import numpy as np

from tests.helpers import some_of
from tests.theory import proofs
from tests.theory.proofs import K10, MU, RANDK, TOPK, N, Proof, f_star, smooth, squares, theta


def marina(e, r):
    """PermK paper, proof of Theorem 4; MARINA, Theorems 2.1, 3.1, 4.1."""
    return r.f + e.step.gamma / (2 * e.estimator.p) * r.error


def of_pl(phi):
    """With twice the weight of the errors, as in the PermK paper's proof of Theorem 5."""
    return lambda e, r: r.f - f_star(e) + 2 * (phi(e, r) - r.f)


def diana(e, r):
    """SAQ's Theorem 2: |x - x*|^2 + 4 omega L_max / (alpha n) gamma^2 mean |h_i - grad_i*|^2 / L_i.

    Of DIANA+, with cal-L_max for omega L_max and in the norms of L_i^-1.
    """
    x_star, at_star, inverses = proofs.at_minimiser(e)
    away = r.before.h_i - at_star
    sigma = np.mean(np.einsum("nd,nde,ne->n", away, inverses, away))
    compressor, L_max = e.compressor, e.cache.constants(e.star).L_i.max()
    cal_L = getattr(compressor, "cal_L_max", None) or compressor.omega * L_max
    weight = 4 * cal_L / (e.estimator.alpha * N) * e.step.gamma**2
    return float(np.sum((r.x - x_star) ** 2) + weight * sigma)


def diana_rate(e):
    return 1 - min(e.step.gamma * MU, e.estimator.alpha / 2)


def dasha(e, r, pl):
    """With G, G_i, H and H_i of the module's first lines."""
    its, gamma, n = e.estimator, e.step.gamma, e.problem.n
    g, h = r.after.g_i, r.after.h_i
    omega, more = e.compressor.omega, 2 if pl else 1
    c = (20 if pl else 8) * gamma * omega * (2 * omega + 1) / n
    q = getattr(its, "b", getattr(its, "p", None))
    kept = {"dasha-page": 2 * c, "dasha-mvr": 2 * c * (q or 0.0)}.get(its.name, 0.0)
    sent = more * gamma * (2 * omega + 1), more**2 * (2 if pl else 4) * gamma * omega / n
    if its.name == "dasha-sync-mvr":
        of_g = gamma / (its.a * ((1.5 if pl else 2) - its.a))
        sent = of_g, 2 * more * its.a * omega * of_g / n
    weights = [*sent, more * gamma / q if q else 0.0, more * kept]
    errors = [part for v in (g - h, h - r.grads) for part in (squares(v.mean(axis=0)), squares(v))]
    return r.f - (f_star(e) if pl else 0.0) + np.dot(weights, errors)


def dasha_noise(e, r, pl):
    """What sampling adds to the Lyapunov function in a round."""
    its, gamma, n, omega = e.estimator, e.step.gamma, e.problem.n, e.compressor.omega
    if its.name == "dasha-mvr":
        b, c = its.b, (20 if pl else 8) * omega * (2 * omega + 1)
        rounds = (10 if pl else 6) * c * b**2 + (4 if pl else 2) * b
        return gamma * rounds * variance(e.problem, r.x) / (n * its.B)
    if its.name == "dasha-sync-mvr":
        return (2 if pl else 1) * gamma * variance(e.problem, r.x) / (n * its.big_B)
    return 0.0


def variance(problem, x) -> float:
    """mean_i mean_j |grad f_ij - grad f_i|^2."""
    m, full = int(problem.rows.min()), problem.gradients(x)
    away = [problem.batch_gradients(x, np.full((problem.m, 1), j)) - full for j in range(m)]
    return float(np.mean(np.sum(np.square(away), axis=2)))


def marina_p(e, r):
    L_i = e.cache.constants(e.star).L_i
    W = np.mean(L_i**2 * np.sum((r.after.w_i - r.x) ** 2, axis=1))
    return r.f + e.step.gamma / (2 * e.estimator.p) * W


def ef21_p(e, r):
    L = e.cache.constants(e.star).L
    weight = e.step.gamma * L**2 / (2 * theta(e.estimator.down.alpha))
    return r.f + weight * squares(r.after.w - r.x)


def ef21_sgdm(e, r):
    eta, alpha, gamma = e.estimator.eta, e.compressor.alpha, e.step.gamma
    weight = gamma / eta + 2 * gamma * (1 - alpha) / theta(alpha) ** 2 * eta
    errors = squares(r.after.g_i - r.after.v_i), squares(r.after.v_i - r.grads)
    return r.f + gamma / theta(alpha) * errors[0] + weight * errors[1]


def ef_bv(e, r):
    omega, lambda_, nu = e.compressor.omega, e.estimator.lambda_, e.estimator.nu
    r_av = (1 - nu) ** 2 + nu**2 * e.compressor.A
    root = sqrt((1 - lambda_) ** 2 + lambda_**2 * omega)
    return r.f + e.step.gamma * r_av / (2 * (1 - root)) * squares(r.before.h_i - r.grads)


def rand_diana(e, r):
    weight = e.step.gamma * e.compressor.A / (2 * theta(e.estimator.p))
    return r.f + weight * squares(r.before.h_i - r.grads)


def ef21(e, r):
    """PermK paper, Theorem 6; with twice the weight of the errors Theorem 7. Also of CLAG."""
    return r.f + e.step.gamma / (2 * theta(e.compressor.alpha)) * squares(r.after.g_i - r.grads)


def convex_rand_diana(e, r):
    gamma, p, L_i = e.step.gamma, e.estimator.p, e.cache.constants(e.star).L_i
    x_star, at_star, _ = proofs.at_minimiser(e)
    sigma = np.mean(np.sum((r.before.h_i - at_star) ** 2, axis=1) / L_i)
    weight = 4 * e.compressor.omega * L_i.max() / (p * N) * gamma**2
    return squares(r.x - x_star) + weight * sigma


def convex_ef21_p(e, r):
    """Of w^k, to which w moves in the round, and h_i^k, which follows it."""
    gamma, omega, its = e.step.gamma, e.compressor.omega, e.estimator
    x_star, at_star, _ = proofs.at_minimiser(e)
    a = 8 * gamma * e.cache.constants(e.star).L / theta(its.down.alpha)
    b = 4 * (1 + a) * gamma**2 * omega / (N * its.alpha)
    moved = a * squares(r.after.w - r.x)
    return squares(r.x - x_star) + moved + b * squares(r.before.h_i - at_star)


def ef21_p_rate(e):
    its = e.estimator
    return 1 - min(e.step.gamma * MU / 8, theta(its.down.alpha) / 4, its.alpha / 2)


def adiana(e, r):
    gamma, th = adiana_steps(e)
    its, eta, k = e.estimator, e.step.gamma, int(np.ndim(r.before.z) > 0)
    w, z = (r.before.w, r.before.z) if k else (r.x, r.x)
    losses, gradients = e.problem.losses_and_gradients(w)
    weight, f = gamma * (1 - gamma * MU) / th, f_star(e)
    noise = 8 * gamma * eta * e.compressor.omega / (th * N * its.alpha)
    F = (1 + th) / its.p * (losses.mean() - f)
    errors = noise * squares(r.before.h_i - gradients)
    return squares(z - proofs.at_minimiser(e)[0]) + 2 * weight * (r.f - f) + weight * F + errors


def adiana_steps(e):
    eta, p = e.step.gamma, e.estimator.p
    th = min(1 / 4, sqrt(eta * MU / p))
    return eta / (2 * (th + eta * MU)), th


def adiana_rate(e):
    (gamma, th), its = adiana_steps(e), e.estimator
    return 1 - min(gamma * MU, th / 2, its.p * th / (1 + th), its.alpha / 4)


def canita(e, r):
    its, eta = e.estimator, e.step.gamma
    th = 2 / (its.p * (r.k - 1 + max(4 / its.p, 8 / its.alpha)))
    weight = 8 * e.compressor.omega * eta / (N * its.alpha)
    errors = (r.f - f_star(e)) / its.p + weight * squares(r.before.h_i - r.grads)
    return eta / th**2 * errors + squares(r.before.x - proofs.at_minimiser(e)[0]) / 2


MARINA, PERMK = {"name": "marina", "theorem": "permk"}, {"name": "permk"}
STOCHASTIC = {
    "marina": ({"name": "marina"}, K10),
    "vr-marina": ({"name": "vr-marina", "batch": 8}, RANDK),
    "pp-marina": ({"name": "pp-marina", "participants": 2}, RANDK),
}
BY_PERMK = [(MARINA, PERMK), (MARINA, PERMK | {"groups": [[0, 3], [1, 2, 4]]}), (MARINA, K10)]
ONLINE = {"batch": 8, "big_batch": 80}
DASHA = {"dasha": {}, "dasha-page": {"batch": 8}, "dasha-mvr": ONLINE, "dasha-sync-mvr": ONLINE}


def dasha_proof(name, pl, **keys):
    """Fewer seeds and rounds where the variance of samples is needed, which takes a while."""
    more = {"rounds": 5, "seeds": 12} if "mvr" in name else {}
    more |= {"rate": proofs.of_mu, "condition": "PL"} if pl else {"share": 1 / 2}
    phi, noise = partial(dasha, pl=pl), partial(dasha_noise, pl=pl)
    method = {"name": name} | DASHA[name] | keys
    return Proof(method, RANDK, phi, 100 if pl else 50, noise=noise, **more)


def plus(inner, breaks, **keys):
    return Proof({"name": "diana"}, {"name": "smooth", "inner": inner} | keys, diana, breaks,
                 rate=diana_rate, rounds=30, seeds=20)  # fmt: skip


SMOOTH = {  # in nonconvex problems and in least squares
    **{name: smooth(*pair, marina, 3) for name, pair in STOCHASTIC.items()},
    **{f"Theorem 4 {i}": smooth(*pair, marina, 3) for i, pair in enumerate(BY_PERMK)},
    **{name: dasha_proof(name, False) for name in DASHA},
    "marina-p": smooth({"name": "marina-p", "down": RANDK}, None, marina_p, 4),
    "marina-p, permk": smooth({"name": "marina-p", "down": PERMK}, None, marina_p, 4),
    "ef21-p": smooth({"name": "ef21-p", "down": TOPK}, None, ef21_p, 40),
    "ef21-sgdm": smooth({"name": "ef21-sgdm", "eta": 0.3}, TOPK, ef21_sgdm, 100),
    "ef-bv": smooth({"name": "ef-bv"}, RANDK, ef_bv, 40),
    "ef-bv, permk": smooth({"name": "ef-bv", "lambda": 0.3}, PERMK, ef_bv, 40),
    "rand-diana": smooth({"name": "rand-diana"}, RANDK, rand_diana, None),
    "gd": smooth({"name": "gd"}, None, lambda e, r: r.f, 1.5, rounds=50),
    "ef21": smooth({"name": "ef21"}, TOPK, ef21, 100, rounds=60),
    "clag": smooth({"name": "clag", "zeta": 1.0}, TOPK, ef21, 30),
    "clag, large zeta": smooth({"name": "clag", "zeta": 200.0}, TOPK, ef21, 30),
}
UNDER_PL = {  # and the multiple of the step at which the contraction fails
    **dict.fromkeys(STOCHASTIC, 6),
    **{"marina-p": 10, "ef21-p": 30, "ef-bv": 100, "rand-diana": 300, "ef21": 100, "clag": 30},
}


def under_pl(proof, breaks):
    more = {"breaks": breaks, "share": 0.0, "rate": proofs.of_mu, "condition": "PL"}
    return proof._replace(phi=of_pl(proof.phi), **more)


QUANT = {"name": "quant-plus", "beta": 5.0}
CONVEX = {  # with l2 > 0
    **{f"{name}, PL": under_pl(SMOOTH[name], breaks) for name, breaks in UNDER_PL.items()},
    **{name: dasha_proof(name, True) for name in DASHA},
    "diana": proofs.convex({"name": "diana"}, diana, diana_rate, 12),
    "diana+, quant+": plus(QUANT, 12),
    "diana+, blocks": plus({"name": "block-quant-plus", "blocks": 5}, 12),
    "diana+, rand-tau+": plus({"name": "rand-tau-plus", "tau": 6.0}, None),
    "diana+, diagonal": plus(QUANT, 40, approximation="diagonal"),
    "rand-diana": proofs.convex({"name": "rand-diana"}, convex_rand_diana,
                         lambda e: 1 - min(e.step.gamma * MU, e.estimator.p / 2), 100),
    "ef21-p": proofs.convex({"name": "ef21-p", "down": TOPK}, convex_ef21_p, ef21_p_rate, 100),
    "adiana": proofs.convex({"name": "adiana", "mu": MU}, adiana, adiana_rate, 16,
                     other={"name": "identity"}),
    "canita": proofs.convex({"name": "canita"}, canita, lambda e: 1.0, 10,
                     other={"name": "identity"}),
}  # fmt: skip


@some_of(4, name=SMOOTH)
def test_smooth_lyapunov_function(name):
    proof = SMOOTH[name]
    if name in DASHA:
        proof = dasha_proof(name, False, start="zero")
    assert proof.excess(proofs.NONCONVEX, 1.0) < 4
    proofs.check(SMOOTH[name], proofs.LEAST_SQUARES)


@some_of(4, name=CONVEX)
def test_contraction(name):
    proofs.check(CONVEX[name], proofs.LOGISTIC)
