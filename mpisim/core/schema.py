"""Build objects from TOML text: check every name and type, report a mistake in one line.

A class that an experiment file can name is a dataclass; its fields are the keys of its table.
Supported annotations: bool, int, float, str, Literal[...], list[...], dict, None, other dataclasses
and classes with ``from_table`` (tables in the table), and unions.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from mpisim.core.errors import InputError, suggestion
from mpisim.core.registry import Spec

T = TypeVar("T")
_hints = functools.cache(typing.get_type_hints)


def choose(kinds: Mapping[str, T], name: object, where: str) -> T:
    """The entry of ``kinds`` called ``name``, or `InputError`."""
    if not isinstance(name, str) or name not in kinds:
        allowed = ", ".join(sorted(kinds))
        if name is None:
            raise InputError(f"{where}: missing; known: {allowed}")
        hint = suggestion(name, kinds)
        raise InputError(f"{where}: unknown name {name!r}; {hint}known: {allowed}")
    return kinds[name]


def build(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """A frozen instance of the dataclass ``cls`` from a table that errors call ``where``."""
    hints = _hints(cls)  # type: ignore[arg-type]
    fields = {f.name.rstrip("_"): f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    values = {}
    for key, value in table.items():
        if key not in fields:
            allowed = ", ".join(sorted(fields)) or "none"
            hint = suggestion(key, fields)
            raise InputError(f"{where}.{key}: unknown key; {hint}allowed here: {allowed}")
        name = fields[key].name
        values[name] = check_type(value, hints[name], f"{where}.{key}")
    for key, field in fields.items():
        defaults = field.default, field.default_factory
        if defaults == (dataclasses.MISSING, dataclasses.MISSING) and field.name not in values:
            raise InputError(f"{where}.{key}: missing; it must be {describe(hints[field.name])}")
    made = cls(**values)
    if isinstance(made, Spec):  # what has no `bind` is a frozen dataclass
        made.freeze()
    return made


def check_type(value: Any, hint: Any, where: str) -> Any:
    """``value`` if it fits the annotation ``hint`` (an int is also a float), or `InputError`."""
    for option in options(hint):
        if hasattr(option, "from_table") and isinstance(value, Mapping):
            return option.from_table(value, where)
        if dataclasses.is_dataclass(option) and isinstance(value, Mapping):
            return build(option, value, where)  # type: ignore[arg-type]
        if _fits(value, option):
            return value
    raise InputError(f"{where}: {value!r} is not allowed; it must be {describe(hint)}")


def describe(hint: Any) -> str:
    """What an annotation allows, as text."""
    names: dict[Any, str] = {int: "an integer", float: "a number", str: "a string"}
    names |= {bool: "true or false", dict: "a table", list: "a list", type(None): "absent"}
    parts = []
    for option in options(hint):
        kind = typing.get_origin(option) or option
        if kind is typing.Literal:
            parts += [repr(v) for v in typing.get_args(option)]
        elif dataclasses.is_dataclass(option):
            parts.append("a table")
        elif kind is list and typing.get_args(option):
            _, noun, *rest = describe(typing.get_args(option)[0]).split(" ")
            parts.append(" ".join(["a list of", noun + "s", *rest]))
        else:
            parts.append(str(names.get(kind) or getattr(kind, "description", option)))
    return " or ".join(parts)


def options(hint: Any) -> tuple[Any, ...]:
    """The types of a union; a type that is none as the only one."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _fits(value: Any, option: Any) -> bool:
    origin = typing.get_origin(option)
    if origin is list:
        (inner,) = typing.get_args(option)
        return isinstance(value, list) and all(_fits(v, inner) for v in value)
    if isinstance(value, bool) and (option in (float, int) or origin is typing.Literal):
        return False
    if origin is typing.Literal:
        return value in typing.get_args(option)
    return isinstance(value, (int | float) if option is float else origin or option)


def require(condition: bool, where: str, value: object, allowed: str) -> None:
    """Raise the one-line `InputError` unless ``condition`` holds."""
    if not condition:
        raise InputError(f"{where}: {value!r} is not allowed; it must be {allowed}")


def share_of(share: float, n: int) -> int:
    """``share`` of n, rounded down. 0.29 of 100 are 29, though their product is 28.999..."""
    return int(Fraction(str(share)) * n // 1)


def flatten(table: Mapping[str, Any], whole: str = "", prefix: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``; the table called ``whole`` stays one value."""
    out: dict[str, Any] = {}
    for key, value in table.items():
        name = prefix + key
        inner = isinstance(value, dict) and name != whole
        out |= flatten(value, whole, f"{name}.") if inner else {name: value}
    return out


def flat(table: Mapping[str, Any]) -> dict[str, str]:
    """``{"a": {"b": 1}}`` as ``{"a.b": "1"}``: values as text."""
    return {key: repr(value) for key, value in flatten(table).items()}


DEEPEST = 16  # tables and lists within each other; experiments need some five
ALLOWED = f"allowed: {DEEPEST} tables and lists within each other"
INTEGERS = "allowed: integers from -2^63 to 2^63 - 1"
_LONG = re.compile(r"\d{1000}")
# a key of a hundred parts: what tomllib takes for one grows with their square
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+"""
_DOTTED = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}\.[ \t]*+){{100}}", re.MULTILINE)


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """The tables in TOML text; `InputError`, which names ``source``, for what Python cannot read.

    Raises `tomllib.TOMLDecodeError` if it is not TOML.
    """
    try:
        if _DOTTED.search(text):
            raise RecursionError
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{source}: nested too deeply; {ALLOWED}") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python converts no more than some thousands of digits
        number = _LONG.search(text)
        line = text.count("\n", 0, number.start()) + 1 if number else 1
        what = f"line {line}: a number of too many digits"
        raise InputError(f"{source}: {what}; {INTEGERS}") from None


def package_table(file: str, name: str) -> dict[str, Any]:
    """The TOML file ``name`` of the package, beside the module whose ``__file__`` is given."""
    return tomllib.loads(Path(file).with_name(name).read_text(encoding="utf-8"))


def filled_template(file: str, name: str, words: Mapping[str, str]) -> str:
    """The text ``template/NAME`` beside the module ``file``, with ``words`` for their keys."""
    text = Path(file).with_name("template").joinpath(name).read_text(encoding="utf-8")
    return re.sub(rf"\b({'|'.join(words)})\b", lambda match: words[match[0]], text)


def require_plain(value: Any, where: str = "", depth: int = 0) -> None:
    """Raise `InputError` for what logs and checkpoints cannot hold, also inside tables and lists.

    These are integers of more than 64 bits, text with NUL or that is not Unicode, and tables and
    lists that are nested too deeply. ``where`` is the name of the value.
    """
    if depth > DEEPEST:
        raise InputError(f"{where[:60]}: nested too deeply; {ALLOWED}")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            require_plain(key, where or "a key")
            require_plain(inner, f"{where}.{key}" if where else str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            require_plain(inner, where, depth + 1)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InputError(f"{where}: an integer of {value.bit_length()} bits; {INTEGERS}")
    elif isinstance(value, str) and not _is_plain(value):
        raise InputError(f"{where}: {value[:40]!r}; allowed: text in UTF-8, without NUL")


def _is_plain(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # bytes of the command line that are not UTF-8
        return False
