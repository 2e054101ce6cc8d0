"""Tables: what is allowed, and one clear line for what is not."""

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
