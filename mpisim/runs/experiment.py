"""Read and check an Experiment from TOML and the command line, and write it as TOML."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tomli_w

from mpisim.comm.byzantine import Attack, Server
from mpisim.comm.fleet import Fleet
from mpisim.comm.network import MEAN
from mpisim.compressors import COMPRESSORS
from mpisim.compressors import make as make_compressor
from mpisim.compressors.base import Compressor
from mpisim.core.errors import SYNONYMS, InputError, plain, suggestion
from mpisim.core.machine import launched
from mpisim.core.registry import table_of
from mpisim.core.schema import ALLOWED, DEEPEST, build, choose, parse_toml, require, require_plain
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS, Method, make_method, needs_compressor
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems import PROBLEMS
from mpisim.problems.base import Problem
from mpisim.problems.data.formats import save_arrays
from mpisim.runs import plugins
from mpisim.runs.metrics import METRICS, Metric
from mpisim.runs.stop import OF_REFERENCE, Stop
from mpisim.wire.base import Precision

TABLES = ("problem", "method", "compressor", "server", "attack", "fleet", "run")
KEYS = ("title", "plugin", *TABLES)


@dataclasses.dataclass(frozen=True)
class Run:
    """The ``[run]`` table.

    rounds : T, the number of rounds
    seed : of all randomness
    wire : type of the values in messages
    dtype : type of the arithmetic
    log_every : rounds between rows of the log, which also has the last round; 1 unless given, for
        networks 2 epochs
    checkpoint_seconds : the time between checkpoints, about what a kill loses
    layout : "shared": rank 0 is the server and holds workers; "dedicated": it is the server only
    ranks : how many ranks of the job the run has: a number, "workers" for one for each worker (and
        one for the server in the layout "dedicated"), or "all". A sweep runs such points alone,
        after the others. The remaining ranks sleep; with too few, the run does not start. All
        unless given
    reference : compute the minimiser of a convex problem, and log `suboptimality` and
        `distance_sq`
    columns : further columns of the log: "pi", "estimates", "adaptive", "denominators",
        "layers", "points", "uniform"
    debug : poison what a method must not use, and compare the ranks after each round; a method that
        is wrong ends the run with a line. The log is the same, except for the clocks
    stop : conditions that end the run before ``rounds``
    """

    rounds: int
    seed: int = 1
    wire: Literal["float32", "float64"] = "float32"
    dtype: Literal["float64", "float32"] = "float64"
    log_every: int | None = None
    checkpoint_seconds: float = 30.0
    layout: Literal["shared", "dedicated"] = "shared"
    ranks: Literal["workers", "all"] | int | None = None
    reference: bool = False
    columns: list[str] | None = None
    debug: bool = False
    stop: Stop = dataclasses.field(default_factory=Stop)

    def __post_init__(self) -> None:
        require(self.rounds >= 0, "run.rounds", self.rounds, "an integer >= 0")
        require(0 <= self.seed < 2**63, "run.seed", self.seed, "an integer from 0 to 2^63 - 1")
        seconds = self.checkpoint_seconds
        require(seconds > 0, "run.checkpoint_seconds", seconds, "a number > 0")
        given = self.log_every is None or self.log_every >= 1
        require(given, "run.log_every", self.log_every, "an integer >= 1")
        enough = not isinstance(self.ranks, int) or self.ranks >= 1
        require(enough, "run.ranks", self.ranks, 'an integer >= 1, "workers" or "all"')
        different = len({*self.metrics}) == len(self.metrics)  # of the plugins loaded so far
        require(different, "run.columns", self.columns, "a list of different names")
        for name in OF_REFERENCE:
            if name in self.stop.conditions and not self.reference:
                raise InputError(f"run.stop.{name}: needs run.reference = true")

    @cached_property
    def metrics(self) -> tuple[type[Metric], ...]:
        """The classes of ``columns``."""
        return tuple(choose(METRICS, name, "run.columns") for name in self.columns or ())

    def logs(self, k: int) -> bool:
        """Whether x^k has a row in the log; ``log_every`` must be known."""
        assert self.log_every is not None
        return k % self.log_every == 0 or k == self.rounds

    def table(self) -> dict[str, Any]:
        """The table with every default in it; without `stop` and `debug` unless they are used."""
        given = dataclasses.asdict(self) | {"debug": self.debug or None}
        return given | {"stop": given["stop"] if self.stop.conditions else None}

    def to_toml(self) -> str:
        """The last part of `Experiment.to_toml`."""
        return tomli_w.dumps({"run": _without_none(self.table())})

    @property
    def precision(self) -> Precision:
        """Types of values on the wire and of arithmetic."""
        return Precision(np.dtype(self.wire), np.dtype(self.dtype))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Experiment:
    """One run: an experiment file with every default filled in; equal to those of equal tables."""

    title: str
    problem: Problem
    method: Method
    compressor: Compressor
    run: Run
    plugin: tuple[str, ...] = ()
    server: Server = MEAN
    attack: Attack | None = None
    fleet: Fleet | None = None

    @cached_property
    def table(self) -> dict[str, Any]:
        """All tables, with every default."""
        return {
            "title": self.title,
            **({"plugin": list(self.plugin)} if self.plugin else {}),
            "problem": table_of(self.problem),
            "method": self.method.table(),
            "compressor": table_of(self.compressor),
            **({"server": dataclasses.asdict(self.server)} if self.server != MEAN else {}),
            **({"attack": dataclasses.asdict(self.attack)} if self.attack else {}),
            **({"fleet": dataclasses.asdict(self.fleet)} if self.fleet else {}),
            "run": self.run.table(),
        }

    @property
    def compressors(self) -> list[Compressor]:
        """The compressor and those of the method, each with those inside it."""
        return [c for one in (self.compressor, *self.method.compressors) for c in _nested(one)]

    @classmethod
    def load(cls, path: str | os.PathLike, settings: Sequence[str] = ()) -> Experiment:
        """From a TOML file; ``settings``, ``TABLE.KEY=VALUE``, override it."""
        return read(Path(path), list(settings))

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any]) -> Experiment:
        """From the tables of a TOML file: problem, method, compressor, run."""
        return parse(dict(tables))

    @classmethod
    def from_arrays(
        cls, x: Any, y: Any, tables: Mapping[str, Any], test: tuple[Any, Any] | None = None
    ) -> Experiment:
        """From features x (N, d), dense or SciPy's sparse, labels y (N,), and tables without data.

        test : x and y of a test set

        Ranks, sweeps, resumed runs and `verify` read the arrays from files in datasets/ of the
        current folder, which this writes once. Their names have the digests of the arrays.
        """
        problem, arrays = tables.get("problem", {}), {"data": (x, y)}
        arrays |= {} if test is None else {"test": test}
        for key in problem.keys() & arrays.keys():
            require(False, f"problem.{key}", problem[key], "absent: arrays are in its place")
        files = {key: save_arrays(*pair) for key, pair in arrays.items()}
        return parse({**tables, "problem": {**problem, **files}})

    def to_toml(self) -> str:
        """The resolved experiment; `parse` of it gives the same experiment."""
        return tomli_w.dumps(_without_none(self.table))

    def with_run(self, table: dict[str, Any]) -> Experiment:
        """The same with another ``[run]`` table; `InputError` as from `parse`."""
        return dataclasses.replace(self, run=_run(table, type(self.problem)))

    def __repr__(self) -> str:
        compressor = "" if self.compressor.name == "identity" else f" + {self.compressor.name}"
        title = f"{self.title}: " if self.title else ""
        what = f"{title}{self.method.name}{compressor} on {self.problem.name}"
        return f"<Experiment {what}, {self.run.rounds} rounds, seed {self.run.seed}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_toml())}</pre>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Experiment) and self.__reduce__() == other.__reduce__()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple:
        """Pickled as its tables: another process loads the plugins, then parses them."""
        files = [os.path.abspath(p) if p.endswith(".py") else p for p in self.plugin]
        tables = _without_none(self.table) | ({"plugin": files} if files else {})
        return parse, (tables,)


def read(path: Path | None, settings: list[str]) -> Experiment:
    """An Experiment from a file (or none) and ``--set`` settings, which override the file."""
    tables = {} if path is None else read_toml(path)
    if "sweep" in tables:
        raise InputError(f"{path}: has a grid, [sweep]; did you mean `mpisim sweep {path}`?")
    for setting in settings:
        apply(tables, setting)
    return parse(tables)


def parse(tables: dict[str, Any]) -> Experiment:
    """An Experiment from the content of a TOML file, or `InputError`."""
    require_plain(tables)
    for key in tables:
        if key == "sweep":
            raise InputError("sweep: a grid of experiments, which `mpisim sweep FILE.toml` runs")
        if key not in KEYS:
            allowed = ", ".join(KEYS)
            raise InputError(f"{key}: unknown table; {suggestion(key, KEYS)}allowed: {allowed}")
    for key in TABLES:
        require(isinstance(tables.get(key, {}), dict), key, tables.get(key), "a table")
    title = tables.get("title", "")
    require(isinstance(title, str), "title", title, "a string")
    plugin = plugins.load(tables.get("plugin", []))
    problem = dict(tables.get("problem", {}))
    kind = choose(PROBLEMS, problem.pop("name", None), "problem.name")
    method = make_method(tables.get("method", {}))
    if not tables.get("compressor") and needs_compressor(method.name):
        raise InputError(
            f'compressor.name: missing for method {method.name!r}; "identity" sends dense vectors'
        )
    compressor = make_compressor(tables.get("compressor") or {"name": "identity"})
    if method.name == "gd" and compressor.name != "identity":
        raise InputError(
            f'compressor.name: {compressor.name!r} is not allowed with "gd", only "identity";'
            ' method "dcgd" compresses'
        )
    run, made = _run(tables.get("run", {}), kind), build(kind, problem, "problem")
    server = build(Server, tables.get("server", {}), "server")
    attack = build(Attack, tables["attack"], "attack") if "attack" in tables else None
    if attack and attack.name == "label-flip" and type(made).flip_labels is Problem.flip_labels:
        raise InputError(f"attack.name: 'label-flip' is not allowed with problem {made.name!r}")
    if attack and run.reference:
        raise InputError("run.reference: true is not allowed with a table [attack]")
    fleet = build(Fleet, tables["fleet"], "fleet") if "fleet" in tables else None
    return Experiment(title, made, method, compressor, run, tuple(plugin), server, attack, fleet)


def tables_of_keys() -> dict[str, list[tuple[str, type]]]:
    """{table: (name, class whose fields are its keys)}; imports all that there is."""
    halves = [*ESTIMATORS.values(), *OPTIMIZERS.values()]
    return {
        "problem": [*PROBLEMS.items()],
        "method": [*((name, Method) for name in METHODS), *(("", half) for half in halves)],
        "compressor": [*COMPRESSORS.items()],
        **{table: [("", kind)] for table, kind in (("run", Run), ("server", Server))},
        "attack": [("", Attack)],
    }


def keys_named(word: str) -> list[str]:
    """TABLE.KEY of all keys that are called so, or have this as another word for them."""
    names = word.replace("-", "_"), SYNONYMS.get(plain(word))
    return sorted(
        {
            (f"{table}.name" if key == table else f"{table}.{key}")
            for table, kinds in tables_of_keys().items()
            for _, kind in kinds
            for key in (*(field.name.rstrip("_") for field in dataclasses.fields(kind)), table)
            if key in names
        }
    )


def _run(table: dict[str, Any], kind: type[Problem]) -> Run:
    """The ``[run]`` table of a problem of this kind."""
    run = build(Run, table, "run")
    rows_are_rounds = run.log_every is None and not kind.epochs_between_rows
    return dataclasses.replace(run, log_every=1) if rows_are_rounds else run


def _nested(compressor: Any) -> list[Compressor]:
    """A compressor and those inside it."""
    values = (getattr(compressor, field.name) for field in dataclasses.fields(compressor))
    inner = [_nested(value) for value in values if dataclasses.is_dataclass(value)]
    return [compressor, *(one for many in inner for one in many)]


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    given = {k: v for k, v in table.items() if v is not None}
    return {k: _without_none(v) if isinstance(v, dict) else v for k, v in given.items()}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, or `InputError`; plugins are relative to its folder."""
    if launched() and (path.is_fifo() or path.is_char_device()):
        why = "under mpirun every rank reads it, so it cannot be a pipe or a terminal"
        raise InputError(f"{path}: {why}; name a file")
    try:
        tables = parse_toml(path.read_text(encoding="utf-8-sig"), str(path))
    except OSError as error:
        meant = suggestion(path.name, [other.name for other in path.parent.glob("*.toml")])
        hint = meant and f"; {meant.strip()}"
        raise InputError(f"{path}: cannot be read: {error.strerror}{hint}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a TOML file: {error}") from None
    require_plain(tables)
    if "plugin" in tables:
        tables["plugin"] = plugins.located(tables["plugin"], path.parent)
    return tables


def apply(tables: dict[str, Any], setting: str) -> None:
    """Apply one ``TABLE.KEY=VALUE``; a value that is not TOML is taken as a string."""
    key, equals, text = _as_utf8(setting).partition("=")
    names, flag = key.strip().split("."), f"--set {key.strip()[:60]}"
    if not equals or not all(names) or (len(names) == 1 and names[0] not in KEYS):
        keys = keys_named(key.strip()) if equals and len(names) == 1 else []
        hint = f"; did you mean {keys[0]}={text.strip()[:60]}?" if keys else ""
        raise InputError(f"{flag}: it must be TABLE.KEY=VALUE{hint}")
    if len(names) > DEEPEST:
        raise InputError(f"{flag}: nested too deeply; {ALLOWED}")
    value: Any = text.strip()
    with contextlib.suppress(tomllib.TOMLDecodeError):
        parsed = parse_toml(f"value = {value}", flag)
        value = parsed["value"] if parsed.keys() == {"value"} else value
    require_plain(value, key.strip())
    for name in names[:-1]:
        tables = tables.setdefault(name, {})
        if not isinstance(tables, dict):
            raise InputError(f"{flag}: {name} is not a table")
    tables[names[-1]] = value


def _as_utf8(argument: str) -> str:
    """An argument as its bytes say in UTF-8, whatever the locale made of them, where they can."""
    with contextlib.suppress(UnicodeError):
        return os.fsencode(argument).decode()
    return argument
