"""Tables: what is allowed, and one clear line for what is not."""

from __future__ import annotations

import pytest

from mpisim.compressors import make
from mpisim.core.errors import InputError
from tests.compressors.cases import SINGLE


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (
            {"name": "randk", "k": 12},
            "compressor.k: 12 is not allowed; it must be an integer from 1 to d = 10",
        ),
        (
            {"name": "randk", "k": 0},
            "compressor.k: 0 is not allowed; it must be an integer from 1 to d = 10",
        ),
        (
            {"name": "topk", "k": -1},
            "compressor.k: -1 is not allowed; it must be an integer from 1 to d = 10",
        ),
        ({"name": "randk", "k": 1.5}, "compressor.k: 1.5 is not allowed; it must be an integer"),
        ({"name": "randk"}, "compressor.k: missing; it must be an integer"),
        ({"name": "randk", "K": 3}, "compressor.K: unknown key; did you mean 'k'? allowed here: k"),
        (
            {"name": "qsgd", "s": 0},
            "compressor.s: 0 is not allowed; it must be an integer from 1 to 2**31 - 1",
        ),
        (
            {"name": "qsgd", "s": 1, "norm": 2},
            "compressor.norm: 2 is not allowed; it must be '2' or 'inf'",
        ),
        (
            {"name": "bernoulli", "p": 0.0},
            "compressor.p: 0.0 is not allowed; it must be a number in (0, 1]",
        ),
        ({"name": "bernoulli", "p": float("nan")}, "compressor.p: nan is not allowed"),
        (
            {"name": "bernoulli", "p": True},
            "compressor.p: True is not allowed; it must be a number",
        ),
        ({"name": "randq"}, "compressor.name: unknown name 'randq'; did you mean 'randk'? known: "),
        ({"k": 3}, "compressor.name: missing; known: "),
    ],
)
def test_bad_tables_give_one_line(table, line):
    with pytest.raises(InputError) as error:
        make(table).bind(10, 2, SINGLE)
    assert str(error.value).startswith(line) and "\n" not in str(error.value)


def test_only_unbiased_compressors_have_an_omega():
    for name, table in {"topk": {"k": 1}, "scaled-sign": {}}.items():
        assert make({"name": name, **table}).bind(10, 2, SINGLE).omega is None


def test_unbiased_compressors_with_a_large_omega_are_not_contractive():
    assert make({"name": "randk", "k": 1}).bind(10, 1, SINGLE).alpha is None
    assert make({"name": "randk", "k": 8}).bind(10, 1, SINGLE).alpha == pytest.approx(0.75)
    assert make({"name": "natural"}).bind(10, 1, SINGLE).alpha == 7 / 8
