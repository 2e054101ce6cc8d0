"""What must agree between two parts of a run, or between a log and the run that would repeat it.

The experiment, as it is resolved, must agree in any case. What executes it (modules, libraries, the
processor) may differ if a user accepts the change, which is then recorded.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import linecache
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from mpisim.core.errors import InputError
from mpisim.core.imports import digest, file_of, imports, short
from mpisim.core.numerics import processor
from mpisim.core.registry import package_of
from mpisim.core.terminal import one_line
from mpisim.runs.experiment import Experiment
from mpisim.runs.host import version

BUDGET = ("run.rounds", "run.stop")  # how long a run is, and nothing about what it does
# What may differ on resume, with the keys in such a table.
FREE = *BUDGET, "title", "plugin", "run.checkpoint_seconds", "run.layout", "run.ranks", "run.debug"
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite")  # their versions may change the last bits
SHOWN = 3  # differences in a message
ACCEPTABLE = ("module ", "library ", "processor")  # how what executes an experiment begins

# The modules of this room that decide values. Others write, read, and report them.
ROUNDS = ("setup", "loop", "ensemble", "run_state", "careful", "stop", "metrics")
REGISTRIES = (
    "mpisim",
    "mpisim.problems",
    "mpisim.compressors",
    "mpisim.methods.estimators",
    "mpisim.wire.placed",
)
ELSEWHERE = ("mpisim.runs", "mpisim.analysis", "mpisim.cli")  # never followed


def must_agree(table: Mapping[str, str]) -> dict[str, str]:
    """A flat table without what may differ on resume."""
    tables = tuple(f"{name}." for name in FREE)
    return {n: v for n, v in table.items() if n not in FREE and not n.startswith(tables)}


def without_budget(config: str) -> str:
    """The same text for resolved experiments, given as TOML, that differ in `BUDGET` alone."""
    head, table, run = config.partition("\n[run]\n")
    keys = "|".join(name.removeprefix("run.") for name in BUDGET)
    budget = rf"^({keys}) = .*\n|\n\[run\.({keys})\]\n(.+\n)*"
    return head + table + re.sub(budget, "", run, flags=re.MULTILINE)


def config_digest(config: str) -> str:
    """Eight hexadecimal digits that identify a resolved experiment in the name of its log."""
    return hashlib.sha256(anywhere(config).encode()).hexdigest()[:8]


def anywhere(config: str) -> str:
    """The TOML of an experiment without the folders of its plugins: a study may be moved."""
    names = re.search(r"^plugin = \[.*?^\]", config, re.DOTALL | re.MULTILINE)
    return config.replace(names[0], re.sub(r'"[^"]*/', '"', names[0]), 1) if names else config


def executed_by(experiment: Experiment) -> dict[str, str]:
    """What executes an experiment in this process, by name.

    The processor is named by its kind alone if all of that kind compute the same bits. Of a plugin
    this is not known.
    """
    sources = modules(experiment)
    parts: list[Any] = [experiment.problem, *experiment.compressors]
    plain = all(name.partition(".")[0] == "mpisim" for name in sources)
    portable = plain and all(part.portable for part in parts)
    return (
        {f"module {name}": text for name, text in sources.items()}
        | {f"library {name}": version(name) for name in (*LIBRARIES, *experiment.problem.libraries)}
        | {"processor": platform.machine() if portable else "; ".join(processor.facts().values())}
    )


def modules(experiment: Experiment) -> dict[str, str]:
    """{module: digest} of all that the experiment executes, sorted by name.

    From the classes that it names, and from the rounds' own modules, imports are followed inside
    the package, and inside the folder of a plugin, whose data files count, too. `REGISTRIES` count,
    but are not followed: they import every class that an experiment could have named.
    """
    method, plugins = experiment.method, experiment.plugin
    parts = [experiment.problem, method.estimator, method.optimizer, method.schedule]
    classes = [*map(type, parts), *map(type, experiment.compressors)]
    classes += experiment.run.metrics
    minimiser = ("minimiser",) if experiment.run.reference else ()
    waiting = [f"mpisim.runs.{name}" for name in (*ROUNDS, *minimiser)]
    waiting += [kind.__module__ for kind in classes]
    waiting += [Path(name).stem if name.endswith(".py") else name for name in plugins]
    return code_of(waiting, classes)


def code_of(names: Iterable[str], classes: Sequence[type]) -> dict[str, str]:
    """{module: digest} of modules and all that they import, with the classes that are in none."""
    digests: dict[str, str] = {}
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name in digests:
            continue
        path = file_of(name)
        digests[name] = digest(path) if path else _unsaved(name, classes)
        digests |= _data_files(name, path)
        if path and name not in REGISTRIES:
            rooms = tuple(f"{room}." for room in ELSEWHERE)
            waiting += [n for n in imports(name, path) if not f"{n}.".startswith(rooms)]
    return dict(sorted(digests.items()))


def _data_files(name: str, path: Path | None) -> dict[str, str]:
    """The digests of the files beside a plugin's module that it declares as ``DATA_FILES``."""
    folder = path.parent if path else Path()
    try:
        files = getattr(sys.modules.get(name), "DATA_FILES", ())
        return {f"{name}/{file}": digest(folder / file) for file in files}
    except (OSError, TypeError) as error:
        raise InputError(f"plugin {name}: DATA_FILES: {one_line(error)}") from None


def _unsaved(name: str, classes: Iterable[type]) -> str:
    """The digest of those classes that are from a notebook, or from the script that runs them."""
    kinds = dict.fromkeys(base for kind in classes for base in kind.__mro__)
    return short("".join(_source(kind) for kind in kinds if kind.__module__ == name).encode())


@cache
def _source(kind: type) -> str:
    """The source of a class when a process first asks; of one from a notebook, its cell; where none
    is kept, its bytecode."""
    with suppress(OSError, TypeError, SyntaxError):
        return inspect.getsource(kind)
    functions = [one for one in vars(kind).values() if isinstance(one, FunctionType)]
    codes = [inspect.unwrap(one).__code__ for one in functions]
    codes = [code for code in codes if not Path(code.co_filename).is_file()]  # not a decorator's
    cells = {"".join(linecache.getlines(code.co_filename)) for code in codes} - {""}
    plain = [(n, v) for n, v in vars(kind).items() if isinstance(v, bool | int | float | str)]
    return "".join([*sorted(cells), repr(plain), *([] if cells else map(_compiled, codes))])


def _compiled(code: CodeType) -> str:
    """Bytecode with its names and constants, without what differs from process to process."""
    texts = [
        _compiled(one) if isinstance(one, CodeType)
        else repr(sorted(map(repr, one)) if isinstance(one, frozenset) else one)
        for one in code.co_consts
    ]  # fmt: skip
    return repr((code.co_code, code.co_names, texts))


def packages_of(execution: Iterable[str]) -> list[str]:
    """Name and version of the packages of plugins among ``module NAME``, each once."""
    names = (name.removeprefix("module ") for name in execution if name.startswith("module "))
    return list(dict.fromkeys(filter(None, map(package_of, names))))


def of_log(attributes: Mapping[str, Any]) -> dict[str, str]:
    """`executed_by` as a log's attributes have it; empty where they lack it."""
    try:
        execution = json.loads(attributes.get("code", "{}"))
    except (TypeError, ValueError, RecursionError):
        return {}
    return execution if isinstance(execution, dict) else {}


def require_same(
    where: object, before: Mapping[str, str], now: Mapping[str, str], accept: bool = False
) -> str:
    """The accepted differences as one line of text, or `InputError` about what must agree.

    where : the file that holds ``before``; accept : whether its user accepts other code
    """
    texts = _differences(before, now)
    for name in texts:
        if not name.startswith(ACCEPTABLE):
            one, other = before.get(name, "nothing"), now.get(name, "nothing")
            raise InputError(f"{where}: has {name} = {one}, this run has {other}")
    if texts and not accept:
        raise InputError(f"{where}: {other_code(before, now)}; --accept-changes continues")
    return ", ".join(texts.values())


def other_code(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """How what executed a log differs from ``now``, as text; empty where it does not."""
    texts = list(_differences(before, now).values())
    if texts and not any(name.startswith(ACCEPTABLE) for name in before):
        return "does not say what code wrote it"
    more = f", and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return f"was written by other code: {', '.join(texts[:SHOWN])}{more}" if texts else ""


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The facts that differ, by name, as text; of ``before`` only what executes a run counts."""
    executing = (name for name in before if name.startswith(ACCEPTABLE))
    pairs = ((n, before.get(n, "nothing"), now.get(n, "nothing")) for n in (*now, *executing))
    return {name: f"{name} ({one} -> {other})" for name, one, other in pairs if one != other}
