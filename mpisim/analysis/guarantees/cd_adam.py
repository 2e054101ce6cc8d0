"""CD-Adam's Theorem 6.4, Table 1 and Lemmas B.5 and B.6 in `mpisim theory`."""

from __future__ import annotations

import numpy as np

from mpisim.analysis import text
from mpisim.methods.estimators.feedback import EF21
from mpisim.methods.method_table import Method
from mpisim.methods.optimizers import AMSGrad
from mpisim.runs.setup import Setup
from mpisim.theory.cd_adam import Theorem64
from mpisim.theory.setting import Setting

TITLE = "CD-Adam paper, Theorem 6.4"


def is_cd_adam(setup: Setup, method: Method) -> bool:
    """Whether the experiment is Algorithm 1 or a variant of it."""
    one = setup.estimator
    both = isinstance(one, EF21) and one.direction == "both"
    return both and isinstance(method.optimizer, AMSGrad)


def tables(
    setup: Setup, method: Method, setting: Setting, delta: float | None, epsilon: float
) -> str:
    """The constants, parameters and lemmas, or why there are none. Collective.

    delta : f(x^0) - f_inf, None if unknown; epsilon : |grad f| <= epsilon, so that the theorem's
    epsilon is its square.
    """
    theorem = _theorem(setup, method, setting, delta)
    if isinstance(theorem, str):
        return f"{TITLE}\n  none: {theorem}"
    epsilon = epsilon * epsilon
    goal = f"min_t E|grad f(x_t)|^2 <= epsilon = {text.number(epsilon)}"
    alpha, tau = theorem.alpha(epsilon), theorem.tau(epsilon)
    own = method.stepsize if isinstance(method.stepsize, float) else None
    steps = [(alpha, tau), *([(own, _batch(setup, theorem))] if own is not None else [])]
    return "\n\n".join(
        [
            f"CD-Adam paper, constants\n{_constants(theorem)}",
            f"{TITLE}: until {goal}, with the order in Table 1\n{_table(theorem, epsilon)}",
            "CD-Adam paper, Lemmas B.5 and B.6: compression errors in the long run\n"
            + _lemmas(theorem, steps),
        ]
    )


def _theorem(
    setup: Setup, method: Method, setting: Setting, delta: float | None
) -> Theorem64 | str:
    """The theorem for this experiment, or why it does not apply. Collective."""
    estimator, optimizer, star = setup.estimator, method.optimizer, setup.star
    assert isinstance(estimator, EF21) and isinstance(optimizer, AMSGrad)
    if estimator.start_ != "zero" or optimizer.variant != "paper" or method.schedule.at:
        return 'it is about Algorithm 1: start = "zero", variant = "paper", one step size'
    if method.weight_decay:
        return "it has no weight decay"
    if setting.alpha is None:
        return f"compressor {setup.compressor.name!r} is not contractive"
    if delta is None:
        return "no lower bound of f is known"
    bounds = setup.problem.double().gradient_bounds()
    if bounds is None:
        return "it needs bounded gradients (Assumption 6.2), and none are known of this problem"
    G, G_inf, variance = star.all_workers(bounds).max(axis=0).tolist()
    return Theorem64(
        n=setting.n,
        N=setup.oracle.samples,
        d=setting.d,
        L=setting.L_max,
        delta_f=delta,
        pi=1 - setting.alpha,
        G=G,
        G_inf=G_inf,
        sigma=float(np.sqrt(variance)),
        beta1=optimizer.beta1,
        nu=optimizer.nu,
    )


def _batch(setup: Setup, theorem: Theorem64) -> int:
    """tau of the experiment; full gradients have N."""
    return getattr(setup.estimator, "tau", theorem.N)


def _constants(theorem: Theorem64) -> str:
    lines = [
        ("pi", theorem.pi, "1 - alpha, the compressor's worst case: (4.1)"),
        ("G", theorem.G, "bound of |grad f_i(x; xi)|: Assumption 6.2"),
        ("G_inf", theorem.G_inf, "the same in the maximum norm"),
        ("sigma", theorem.sigma, "bound of its standard deviation: Assumption 6.3"),
        ("L", theorem.L, "max_i L_i: Assumption 6.1"),
        ("Delta f", theorem.delta_f, "f(x^0) - f_inf"),
        ("G~", theorem.G_tilde, "C_2 G, C_2 = (1 + sqrt(pi))^2 / (1 - sqrt(pi))^2"),
    ]
    return text.columns([(name, text.number(value), source) for name, value, source in lines])


def _table(theorem: Theorem64, epsilon: float) -> str:
    orders = theorem.orders(epsilon)
    formulas = {
        "M_1": "C Delta f",
        "M_2": "C G G~ / ((1 - beta_1) sqrt(nu))",
        "M_3": "32 C C_1 G~^2 / nu + 2 sqrt(pi) C L G G~ sqrt(d) / (nu (1 - sqrt(pi))^2)",
        "M_4": "4 C C_1 / nu",
        "M_5": "4 sqrt(pi) C G / (sqrt(nu) (1 - sqrt(pi))^2)",
    }
    lines = [
        (name, f"{getattr(theorem, name):.3e}", f"{orders[name]:.3e}", formula)
        for name, formula in formulas.items()
    ]
    rounds = f"{theorem.T(epsilon):.3e}", f"{orders['T']:.3e}"
    lines += [
        ("alpha", f"{theorem.alpha(epsilon):.3e}", "", "at most this: (6.1)"),
        ("tau", str(theorem.tau(epsilon)), "", f"at least this, of N = {theorem.N}: (6.1)"),
        ("T", *rounds, "at least this: (6.1)"),
    ]
    head = ("", "value", "O(.) with constant 1", "")
    return text.columns([head, *lines], right=(1, 2))


def _lemmas(theorem: Theorem64, steps: list[tuple[float, int]]) -> str:
    head = ("alpha", "tau", "E|g^ - g| (B.5)", "E|g~ - g^| (B.6)", "")
    whose = ("Theorem 6.4", "the experiment's")
    lines = [
        (
            f"{alpha:.3e}",
            str(tau),
            f"{theorem.worker_error(alpha, tau):.3e}",
            f"{theorem.server_error(alpha, tau):.3e}",
            name,
        )
        for (alpha, tau), name in zip(steps, whose, strict=False)
    ]
    return text.columns([head, *lines], right=(0, 1, 2, 3))
