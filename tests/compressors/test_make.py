"""Tables: what is allowed, and one clear line for what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpisim.compressors import make
from mpisim.core.errors import InputError
from tests.compressors.cases import SINGLE

REFUSED = Path(__file__).with_name("refused.txt").read_text().splitlines()[1:]


@pytest.mark.parametrize("case", REFUSED)
def test_bad_tables_give_one_line(case):
    d, n, rest = case.split(maxsplit=2)
    table, line = rest.split(" -> ")
    with pytest.raises(InputError) as error:
        make(json.loads(table)).bind(int(d), int(n), SINGLE)
    assert str(error.value).startswith(line) and "\n" not in str(error.value)


def test_only_unbiased_compressors_have_an_omega():
    for name, table in {"topk": {"k": 1}, "scaled-sign": {}}.items():
        assert make({"name": name, **table}).bind(10, 2, SINGLE).omega is None


def test_unbiased_compressors_with_a_large_omega_are_not_contractive():
    assert make({"name": "randk", "k": 1}).bind(10, 1, SINGLE).alpha is None
    assert make({"name": "randk", "k": 8}).bind(10, 1, SINGLE).alpha == pytest.approx(0.75)
    assert make({"name": "natural"}).bind(10, 1, SINGLE).alpha == 7 / 8
