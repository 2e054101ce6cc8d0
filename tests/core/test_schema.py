"""Tables to objects, and the one-line errors."""

import dataclasses
from typing import Literal

import pytest

from mpisim.core.errors import InputError
from mpisim.core.registry import Spec
from mpisim.core.schema import build, choose


@dataclasses.dataclass
class Part(Spec):
    k: int
    p: float | Literal["theory"] = "theory"
    lambda_: float = 0.1
    flag: bool = False
    path: str | None = None


def test_defaults_and_conversion():
    part = build(Part, {"k": 3, "lambda": 2, "p": 1}, "part")
    assert (part.k, part.lambda_, part.p, part.path) == (3, 2, 1, None)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "part.k: missing; it must be an integer"),
        ({"k": 1.5}, "part.k: 1.5 is not allowed; it must be an integer"),
        ({"k": True}, "part.k: True"),
        ({"k": 1, "p": "half"}, "part.p: 'half' is not allowed; it must be a number or 'theory'"),
        ({"k": 1, "q": 2}, "part.q: unknown key; allowed here: flag, k, lambda, p, path"),
        ({"k": 1, "flag": 1}, "part.flag: 1 is not allowed; it must be true or false"),
        ({"k": 1, "path": 3}, "a string or absent"),
    ],
)
def test_mistakes(table, said):
    with pytest.raises(InputError) as error:
        build(Part, table, "part")
    assert said in str(error.value) and "\n" not in str(error.value)


@dataclasses.dataclass
class Table:
    part: Part = dataclasses.field(default_factory=lambda: Part(1))


def test_a_table_in_the_table():
    assert build(Table, {}, "table").part.k == 1
    part = build(Table, {"part": {"k": 4}}, "table").part
    assert isinstance(part, Part) and part.k == 4
    with pytest.raises(dataclasses.FrozenInstanceError):
        part.k = 5
    with pytest.raises(InputError, match=r"table\.part\.k: 'a' is not allowed"):
        build(Table, {"part": {"k": "a"}}, "table")
    with pytest.raises(InputError, match=r"table\.part: 3 is not allowed; it must be a table"):
        build(Table, {"part": 3}, "table")


def test_choose_lists_what_there_is():
    with pytest.raises(InputError, match="part: unknown name 'c'; known: a, b"):
        choose({"b": 1, "a": 2}, "c", "part")
