"""The ``[method]`` table: named pairs of an estimator and an optimizer, their step and schedule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple, TypeVar, get_args

from mpisim.compressors import Compressor
from mpisim.core.errors import InputError, suggestion
from mpisim.core.numerics.functions import power
from mpisim.core.registry import Registry, table_of
from mpisim.core.schema import build, check_type, choose, package_table, require, share_of
from mpisim.methods.estimators import ESTIMATORS, Estimator, estimator
from mpisim.methods.optimizers import OPTIMIZERS, Optimizer
from mpisim.theory.setting import Condition
from mpisim.theory.smoothness import Bound

STEPSIZES = (
    'a number > 0, "theory", { theory = 2.0 } or { theory = 1.0, condition = "PL" }'
    ' ("nonconvex" unless given)'
)

T = TypeVar("T")
StepSize = float | str | dict[str, Any]


class Pair(NamedTuple):
    """The halves that a method's name stands for: a row of methods.toml.

    label : its name in figures and tables
    defaults : of its keys, if they differ from the estimator's
    dense : it sends dense vectors unless the experiment names a compressor
    """

    estimator: str
    label: str
    optimizer: str = "gd"
    defaults: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it
    dense: bool = False


TABLE = package_table(__file__, "methods.toml")
METHODS: Registry[Pair] = Registry(
    "method",
    {name: Pair(**{"estimator": name} | keys) for name, keys in TABLE.items()},
    {"ef21-bc": "ef21-2way", "local-sgd": "fedavg", "proxskip": "scaffnew"},
)


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The step size is multiplied by ``factor`` at each of the rounds ``at``.

    at : rounds, or shares of ``run.rounds`` between 0 and 1; ascending.
    """

    at: list[float] = dataclasses.field(default_factory=list)
    factor: float = 0.1

    def __post_init__(self) -> None:
        good = all(0 < v < inf and (v < 1 or v == int(v)) for v in self.at)
        allowed = "rounds >= 1, or shares of run.rounds below 1, ascending"
        good = good and self.at == sorted(self.at)
        require(good, "method.schedule.at", self.at, allowed)
        require(self.factor > 0, "method.schedule.factor", self.factor, "a number > 0")

    def multiple(self, k: int, rounds: int) -> float:
        """The factor of the step size in round k, of a run of ``rounds`` rounds."""
        if not self.at:
            return 1.0
        return power(self.factor, sum(k >= start for start in self.starts(rounds)))

    def starts(self, rounds: int) -> list[float]:
        """``at``, with shares as rounds, rounded up."""
        return [-share_of(-v, rounds) if v < 1 else v for v in self.at]


@dataclasses.dataclass(frozen=True)
class Method:
    """A ``[method]`` table: a pair by ``name``; ``estimator`` and ``optimizer`` replace a half.

    smoothness : the constants behind a theory step: "sharp" (the best known), or "published", the
        bounds of the paper's code.
    schedule : the step size's multiple in each round.
    weight_decay : this multiple of x^k is added to g^k in the step, uncompressed, as in CD-Adam's
        code; None, or a number >= 0.
    """

    name: str
    stepsize: StepSize
    smoothness: Bound
    estimator: Estimator
    optimizer: Optimizer
    schedule: Schedule
    weight_decay: float | None

    def multiple(self) -> float | None:
        """The multiple of the theory step, or None if the step is a number."""
        if isinstance(self.stepsize, dict):
            return float(self.stepsize["theory"])
        return 1.0 if self.stepsize == "theory" else None

    def require_plain_step(self) -> None:
        """`InputError` where x^{k+1} is not x^k - gamma g^k, or where gamma rises."""
        why = 'theorems are about x - gamma g with one gamma; "theory" is not allowed with'
        if self.weight_decay:
            raise InputError(f"method.weight_decay: {why} weight decay")
        if self.schedule.at and self.schedule.factor > 1:
            raise InputError(f"method.schedule.factor: {why} a factor above 1")

    def condition(self) -> Condition:
        """The condition of the theorem behind a theory step."""
        given = self.stepsize if isinstance(self.stepsize, dict) else {}
        return given.get("condition", "nonconvex")

    @property
    def compressors(self) -> list[Compressor]:
        """Those of its keys."""
        values = (getattr(self.estimator, f.name) for f in dataclasses.fields(self.estimator))  # type: ignore[arg-type]
        return [value for value in values if isinstance(value, Compressor)]

    def table(self) -> dict[str, Any]:
        """The table with every default in it."""
        table: dict[str, Any] = {"name": self.name, "stepsize": self.stepsize}
        table["smoothness"] = self.smoothness
        table |= {"estimator": self.estimator.name, "optimizer": self.optimizer.name}
        for half in (self.estimator, self.optimizer):
            table |= table_of(half) | {"name": self.name}
        table["schedule"] = dataclasses.asdict(self.schedule) if self.schedule.at else None
        table["weight_decay"] = self.weight_decay
        return table


def method(
    name: str,
    label: str = "",
    optimizer: str = "gd",
    letters: Mapping[str, str] | None = None,
    dense: bool = False,
    **defaults: Any,
) -> Callable[[type[Estimator]], type[Estimator]]:
    """Class decorator: register an estimator, and the method that pairs it with ``optimizer``.

    label : its name in figures and tables; ``name`` unless given
    letters : {key: letter} of its parameters, for figures and `mpisim theory`
    dense : it sends dense vectors unless the experiment names a compressor
    defaults : of its keys
    """

    def register(cls: type[Estimator]) -> type[Estimator]:
        if letters is not None:
            cls.letters = {**cls.letters, **letters}
        given = {key.rstrip("_"): value for key, value in defaults.items()}  # as `lambda_` is
        METHODS[name] = Pair(name, label or name, optimizer, given, dense)
        return estimator(name)(cls)

    return register


def needs_compressor(name: str) -> bool:
    """Whether an experiment with this method must have a ``[compressor]`` table."""
    return not (METHODS.knows(name) and METHODS[name].dense)


def make_method(table: dict[str, Any]) -> Method:
    """A Method from a ``[method]`` table, or `InputError`."""
    name, first, second, defaults = _pair(table)
    estimator_class = choose(ESTIMATORS, table.get("estimator", first), "method.estimator")
    optimizer_class = choose(OPTIMIZERS, table.get("optimizer", second), "method.optimizer")
    allowed = _keys(Method) | _keys(estimator_class) | _keys(optimizer_class)
    replaced = table.keys() & {"estimator", "optimizer"}  # the other's keys may differ
    for key in (table.keys() if replaced else table.keys() | defaults.keys()) - allowed:
        names = ", ".join(sorted(allowed))
        hint = suggestion(key, allowed) or _elsewhere(key, name)
        raise InputError(f"method.{key}: unknown key for {name!r}; {hint}allowed here: {names}")
    table = {key: value for key, value in defaults.items() if key in allowed} | table
    halves = _half(estimator_class, table), _half(optimizer_class, table)
    _require_one_value(*halves)
    bound = check_type(table.get("smoothness", "sharp"), Bound, "method.smoothness")
    schedule = check_type(table.get("schedule"), dict | None, "method.schedule")
    decay = check_type(table.get("weight_decay"), float | None, "method.weight_decay")
    fits = decay is None or 0 <= decay < inf
    require(fits, "method.weight_decay", decay, "a finite number >= 0")
    schedule = build(Schedule, schedule or {}, "method.schedule")
    return Method(name, _stepsize(table), bound, *halves, schedule, decay)


def _pair(table: dict[str, Any]) -> tuple[str, Any, Any, dict[str, Any]]:
    """Name, estimator, optimizer and defaults; an unnamed pair is called "a+b"."""
    first, second = table.get("estimator"), table.get("optimizer")
    unnamed = f"{first}+{second}"
    if first and second and table.get("name", unnamed) == unnamed:
        return unnamed, first, second, {}
    name: Any = table.get("name")
    pair = choose(METHODS, name, "method.name")
    return METHODS.canonical(name), pair.estimator, pair.optimizer, pair.defaults


def _elsewhere(key: str, name: str) -> str:
    """``'vr-marina' has it; `` of a key of other methods, those of the same family first."""
    having = [
        other
        for other, pair in METHODS.items()
        if key in _keys(ESTIMATORS[pair.estimator]) | _keys(OPTIMIZERS[pair.optimizer])
    ]
    family = [other for other in having if name in other.split("-")] or having
    named = " or ".join(f"method {other!r}" for other in family[:3])
    return f"{named} has it; " if family else ""


def _keys(half: type) -> set[str]:
    return {field.name.rstrip("_") for field in dataclasses.fields(half)}


def _half(kind: type[T], table: dict[str, Any]) -> T:
    keys = _keys(kind)
    return build(kind, {key: value for key, value in table.items() if key in keys}, "method")


def _require_one_value(estimator: Estimator, optimizer: Optimizer) -> None:
    """`InputError` if a key that both halves have differs between them: a table has it once."""
    first, second = table_of(estimator), table_of(optimizer)
    for key in (first.keys() & second.keys()) - {"name"}:
        if first[key] != second[key]:
            names = f"{estimator.name!r} and {optimizer.name!r}"
            values = f"with {first[key]!r} and {second[key]!r} unless it is given"
            raise InputError(f"method.{key}: missing; {names} share it, {values}")


def _stepsize(table: dict[str, Any]) -> StepSize:
    if "stepsize" not in table:
        raise InputError(f"method.stepsize: missing; it must be {STEPSIZES}")
    value = check_type(table["stepsize"], float | str | dict, "method.stepsize")
    given = value if isinstance(value, dict) else {"theory": value}
    number: Any = given.get("theory")
    real = isinstance(number, int | float) and not isinstance(number, bool)
    options = given.keys() <= {"theory", "condition"}
    options = options and given.get("condition", "nonconvex") in get_args(Condition)
    allowed = value == "theory" or (real and 0 < number < inf and options)
    require(allowed, "method.stepsize", value, STEPSIZES)
    return value
