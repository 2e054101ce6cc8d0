"""Rows of Tables 1 and 2: by hand, against what runs really send, and as `mpisim theory` prints."""

import dataclasses
from math import ceil, log

import numpy as np
import pytest

from mpisim.methods.estimators import estimator
from mpisim.methods.estimators.marina import Marina
from mpisim.theory import tables
from mpisim.theory.tables import Case, Guarantee
from tests.helpers import columns, run_tables, table
from tests.theory.support import SAMPLE, setting, theory


def by_name(case: Case, *rows: Guarantee) -> dict:
    """The table with a method's rows."""
    table = tables.merged(tables.rows(case)[0], rows)
    return {f"{one.setup} {one.method}": one for one in table}


def case(omega=8.0, **keys) -> Case:
    """m = 100, Delta_0 = 3, epsilon = 0.1; the constants and n, d as `support` says."""
    of_setting = {k: keys.pop(k) for k in ("condition", "mu", "alpha", "zeta", "n") if k in keys}
    return Case(setting(omega, **of_setting), **({"m": 100, "delta": 3.0, "epsilon": 0.1} | keys))


def test_table_1_by_hand():
    rows = by_name(case(zeta=4.0))  # MARINA: p = 1/2, gamma = 1/15
    gd, marina = rows["(1) GD"], rows["(1) MARINA"]
    assert (gd.rounds, gd.bits, gd.calls) == (2400, 2400 * 256, 240000)
    assert marina.rounds == pytest.approx(2 * 3 * 15 / 0.01, abs=1)
    assert marina.bits == 32 * (8 + (marina.rounds - 1) * 6)
    assert marina.calls == 100 * marina.rounds
    assert (gd.kind, marina.kind, marina.source) == ("bound", "bound", "Theorem 2.1")
    unit = 3 * 7 / 0.01
    diana, steph = rows["(1) DIANA"], rows["(1) FedSTEPH, r = n"]
    assert (diana.rounds, diana.kind) == (ceil(unit * (1 + 9 * 2)), "order")
    assert steph.rounds == pytest.approx(unit**2 * 5, abs=1)
    assert rows["(1)+(5) DIANA"].rounds == pytest.approx(unit * 19 + unit**2 * 9 / 2, abs=1)
    vr = rows["(1)+(5) VR-DIANA, b' = 1"]
    assert vr.rounds == ceil(unit * (100 ** (2 / 3) + 8) * 5**0.5)
    assert vr.calls == 100 + (vr.rounds - 1) * 3
    assert rows["(1)+(5) VR-MARINA, b' = 1"].source == "Theorem 3.1"


def test_table_2_by_hand():
    rows = by_name(case(condition="PL", mu=0.01, zeta=4.0))
    gd, marina = rows["(1) GD"], rows["(1) MARINA"]
    assert gd.rounds == ceil(log(30) / -log(1 - 0.01 / 4))
    gamma = 1 / (5 * (1 + 8**0.5))
    assert marina.rounds == ceil(log(30) / -log(1 - 0.01 * gamma))
    assert rows["(1) DIANA"].rounds == ceil(700 * log(30) * 19)
    noisy = 700 * log(30) * (19 + 4.5 * (700 + 30))
    assert rows["(1)+(5) DIANA"].rounds == pytest.approx(noisy, rel=1e-9, abs=1)
    sources = {one.source for one in rows.values() if one.kind == "bound"}
    assert sources == {"1 / L", "Theorem 2.2", "Theorem D.2"}


@estimator("marina-by-another-name")
class Heir(Marina):
    pass


def test_guarantees_are_inherited(capsys):
    """No name and no class of a method is looked at: a subclass has its rows and tables."""
    common = (*SAMPLE, "problem.name=nonconvex-loss", "compressor={name='randk',k=10}")
    more = ("method.p=0.3", "method.theorem=permk", "method.stepsize=0.1", "method.optimizer=gd")
    texts = [
        theory(capsys, *common, *more, f"method.estimator={name}")
        for name in ("marina", "marina-by-another-name")
    ]
    first, second = (text[text.index("f(x^0)") :] for text in texts)
    assert first == second and "PermK paper, Table 4" in first


@pytest.mark.parametrize(
    ("method", "row"),
    [
        ("name = 'ef21'", True),
        ("name = 'ef21', start = 'compressed'", False),
        ("name = 'ef21', batch = 5", False),
        ("name = 'ef21-2way'", False),
        ("name = 'cd-adam'", False),
    ],
)
def test_theorem_6_has_a_row_for_what_it_is_about_alone(method, row, capsys):
    """Compressed upwards, with full gradients, from g_i^0 = grad f_i(x^0)."""
    words = "problem.name=logistic", "compressor={ name = 'topk', k = 5 }"
    text = theory(capsys, *SAMPLE, *words, f"method={{ {method}, stepsize = 0.1 }}")
    assert ("Theorem 6 (EF21), start" in text) == row


RANDK = {"name": "randk", "k": 10}
METHODS = [
    ({"name": "gd"}, None, tables.gradient_descent),
    ({"name": "marina"}, RANDK, tables.marina),
    ({"name": "vr-marina", "batch": 16}, RANDK, tables.vr_marina),
    ({"name": "pp-marina", "participants": 2}, RANDK, tables.pp_marina),
    ({"name": "ef21"}, {"name": "topk", "k": 10}, tables.ef21),
]


@pytest.mark.parametrize(
    ("method", "compressor", "predict"), METHODS, ids=[m["name"] for m, _, _ in METHODS]
)
def test_predicted_bits_and_calls_are_those_of_runs(method, compressor, predict, tmp_path):
    """Expected bits and sample gradients of K rounds against the logs of 6 runs of K rounds."""
    omega = 11.3 if compressor is RANDK else None
    sampled = {"b": method.get("batch"), "r": method.get("participants")}
    of_setting = setting(omega, alpha=10 / 123, zeta=10.0, n=5, d=123)
    one = Case(of_setting, m=320, delta=1.0, epsilon=0.1, **sampled)
    rounds, logs = 200, [tmp_path / f"{seed}.h5" for seed in range(6)]
    for seed, log_file in enumerate(logs):
        run = {"workers": 5, "rounds": rounds, "seed": seed, "log_every": rounds}
        run_tables(table(method | {"stepsize": 1e-3}, compressor, **run), log_file)
    first, many = predict(dataclasses.replace(one, epsilon=1e9)), predict(one)
    assert first.rounds == 1
    share = (rounds - 1) / (many.rounds - 1)
    bits = first.bits + (many.bits - first.bits) * share
    calls = first.calls + (many.calls - first.calls) * share
    for name, expected in (("paper_bits_up", bits), ("oracle_calls", calls)):
        totals = [columns(log_file)[name][-1] / 5 for log_file in logs]
        error = np.std(totals, ddof=1) / np.sqrt(len(logs))
        assert abs(np.mean(totals) - expected) <= 5 * error + 1e-9 * expected, name
        assert error < 0.1 * expected


def test_command(capsys):
    words = "problem.name=logistic", "problem.l2=0.01", "compressor={ name = 'randk', k = 10 }"
    step = "{ theory = 2.0, condition = 'PL' }"
    method = f"method={{ name = 'pp-marina', participants = 3, stepsize = {step} }}"
    text = theory(capsys, *SAMPLE, *words, method)
    for part in (
        *("n = 5, d = 123, m = 320", "omega = 11.3", "zeta = 10", "p = 0.0487805, r = 3"),
        *("Theorem E.2 (PL)", "2 x theory", "f(x^0)        0.693147", "by Newton's method"),
        *("the penalty's l2", "epsilon^2 = 0.0001", "PP-MARINA, r = 3"),
        "MARINA paper, Table 2: until E f - f(x*) <= epsilon = 0.01",
    ):
        assert part in text, part
    assert "nan" not in text and "none" not in text
