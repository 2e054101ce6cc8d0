"""A step of Scaffnew, TAMUNA and LoCoDL over all draws, on quadratics in one dimension."""

from itertools import combinations, product

import numpy as np
import pytest

P = 0.4  # of the coin
SENDERS = {  # of n workers: the subsets of s that send a coordinate, and its groups if it has any
    "2 of 5": (5, 2, list(combinations(range(5), 2)), None),
    "3 of 5": (5, 3, list(combinations(range(5), 3)), None),
    "all": (5, 5, [range(5)], None),
    "2 groups": (6, 2, list(product(range(3), range(3, 6))), (2, 3)),
    "3 groups": (6, 3, list(product(range(2), range(2, 4), range(4, 6))), (3, 2)),
}


def parts(u, groups):
    """Mean squares of u within the groups, and of the groups' means; without groups all, and 0."""
    if groups is None:
        return np.mean(u**2), 0.0
    means = u.reshape(groups).mean(axis=1, keepdims=True)
    return np.mean((u.reshape(groups) - means) ** 2), np.mean(means**2)


@pytest.mark.parametrize("senders", SENDERS)
def test_compressed_scaffnew_is_as_fast_as_derived(senders):
    n, s, subsets, groups = SENDERS[senders]
    rng = np.random.default_rng(s)
    shares = ((s - 1) / (n - 1),) * 2 if groups is None else ((s - 1) / n, s / n)
    for eta in (0.3, n * (s - 1) / (s * (n - 1))):
        slowest, worst = P**2 * eta * shares[0], 0.0
        for _ in range(300):
            L = rng.uniform(0.1, 1.0, n) ** rng.integers(1, 4)
            gamma, mu = 1 / L.max(), L.min()
            b = L * rng.standard_normal() - rng.standard_normal(n)
            star = b.mean() / L.mean()
            h_star = L * star - b
            x = star + rng.standard_normal() * np.ones(n) + rng.choice([0, 1]) * rng.random(n)
            h = rng.standard_normal(n)
            h = h - h.mean()

            def psi(x, h, star=star, h_star=h_star, gamma=gamma, eta=eta):
                dual = zip(parts(gamma * (h - h_star), groups), shares, strict=True)
                return np.mean((x - star) ** 2) + sum(u / (P**2 * eta * c) for u, c in dual)

            hat = x - gamma * (L * x - b - h)
            after = []
            for S in map(list, subsets):
                new, moved = hat[S].mean(), h.copy()
                moved[S] += P * eta / gamma * (new - hat[S])
                after.append(psi(np.full(n, new), moved))
            mean = P * np.mean(after) + (1 - P) * psi(hat, h)
            worst = max(worst, mean / (max((1 - gamma * mu) ** 2, 1 - slowest) * psi(x, h)))
        assert 0.7 < worst <= 1 + 1e-12


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_locodl_is_as_fast_as_derived(share, n=4):
    """Over all draws of Bernoulli."""
    rng, omega, worst = np.random.default_rng(2), 1 / share - 1, 0.0
    rho = chi = n / (n + omega)
    s = P * chi / (1 + 2 * omega)
    draws = np.array(list(product([0, 1], repeat=n)))
    weights = (share**draws * (1 - share) ** (1 - draws)).prod(axis=1)
    for _ in range(400):
        L, mu = rng.uniform(0.05, 1.0, n), rng.uniform(0.05, 1.0)
        gamma, low = 1 / max(L.max(), mu), min(L.min(), mu)
        b = rng.standard_normal(n)
        star = b.mean() / (L.mean() + mu)
        u_star, v_star = L * star - b, mu * star
        x, y = star + rng.choice([0.01, 1]) * rng.standard_normal(n), star + rng.standard_normal()
        u = rng.choice([0.01, 1]) * rng.standard_normal(n)
        v = -u.mean()

        def psi(x, y, u, v, star=star, u_star=u_star, v_star=v_star, gamma=gamma):
            dual = gamma**2 * (np.mean((u - u_star) ** 2) + (v - v_star) ** 2)
            return np.mean((x - star) ** 2) + (y - star) ** 2 + dual / (P * s)

        hat, yhat = x - gamma * (L * x - b - u), y - gamma * (mu * y - v)
        after = 0.0
        for kept, weight in zip(draws, weights, strict=True):
            d_i = kept / share * (hat - yhat)
            d = d_i.mean() / 2
            moved = (1 - rho) * hat + rho * (yhat + d), yhat + rho * d
            after += weight * psi(*moved, u + s / gamma * (d - d_i), v + s / gamma * d)
        mean = P * after + (1 - P) * psi(hat, yhat, u, v)
        worst = max(worst, mean / (max((1 - gamma * low) ** 2, 1 - P * s) * psi(x, y, u, v)))
    assert 0.7 < worst <= 1 + 1e-12
