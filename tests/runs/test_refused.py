"""Experiments that are refused, each with one line."""

import json
import re
from pathlib import Path

import pytest

from mpisim.core.errors import InputError
from tests.helpers import run_tables, table

TEXT = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8")
CASES = [line.split(" -> ") for line in TEXT.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(("given", "says"), CASES)
def test_what_is_not_allowed(given, says):
    tables = table({"name": "gd", "stepsize": 0.1}, rounds=1)
    for name, keys in json.loads(given).items():
        tables[name] = tables.get(name, {}) | keys
    if tables["problem"]["name"] == "quadratic":
        del tables["problem"]["data"]
    with pytest.raises(InputError) as error:
        run_tables(tables)
    assert re.search(says, str(error.value)) and "\n" not in str(error.value)
