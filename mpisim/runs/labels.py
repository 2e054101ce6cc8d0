"""Names of methods, compressors and parameters as figures, tables and progress show them.

A log keeps those that its classes declare. So the curves of a plugin are labelled wherever its logs
are read, without the plugin.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mpisim.comm.communicators import worker_ranks
from mpisim.core import schema
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.method_table import METHODS
from mpisim.problems.data.find import lookup
from mpisim.runs.experiment import Experiment

Tables = dict[str, Any]
T = TypeVar("T")
K = TypeVar("K")
PARAMETERS = schema.package_table(__file__, "letters.toml")


class Labels:
    """The names in one log, which keeps those that its classes declare.

    declared : see `declared`; without it, names are mpisim's own
    """

    def __init__(self, declared: Mapping[str, Any]):
        self._declared = declared

    def method(self, name: str) -> str:
        """The name of a method in its paper."""
        return str(self._declared.get("method") or _method(name))

    def compressor(self, table: Mapping[str, Any], also: Collection[str] = ()) -> str:
        """A compressor, its parameters with a letter, and those in ``also``: ``RandK (K = 10)``."""
        label, letters = self._compressor(str(table.get("name", "")))
        shown = [
            parameter(key, value, letters)
            for key, value in table.items()
            if (_shown(key, value, letters) or key in also) and not isinstance(value, dict | list)
        ]
        text = label + "".join(f" of {self.compressor(one, also)}" for one in _inner(table))
        return text + (f" ({', '.join(shown)})" if shown else "")

    def problem(self, table: Mapping[str, Any]) -> str:
        """A problem and its data: ``non-convex loss on mushrooms``."""
        text = self.problem_name(str(table.get("name", "")))
        return f"{text} on {Path(str(table['data'])).name}" if table.get("data") else text

    def problem_name(self, name: str) -> str:
        """A problem without its data."""
        if "problem" in self._declared:
            return str(self._declared["problem"])
        from mpisim.problems import PROBLEMS

        return PROBLEMS[name].title if PROBLEMS.knows(name) else name

    def parameter(self, key: str, value: Any) -> str:
        """A parameter of the method, problem or run."""
        return parameter(key, value, self._declared.get("letters"))

    def _compressor(self, name: str) -> tuple[str, Mapping[str, str] | None]:
        """Label and letters."""
        if name in self._declared.get("compressors", {}):
            return self._declared["compressors"][name]
        from mpisim.compressors import COMPRESSORS  # imports Numba, which logs do not need

        if not COMPRESSORS.knows(name):
            return name, None
        return COMPRESSORS[name].title, COMPRESSORS[name].letters


_REGISTERED = Labels({})
method, compressor, problem = _REGISTERED.method, _REGISTERED.compressor, _REGISTERED.problem


def declared(experiment: Experiment) -> dict[str, Any]:
    """What the classes of an experiment declare; its log keeps it as JSON, for `of_log`.

    method, problem : their labels
    letters : {key: letter} of the method's parameters, without those that all methods have
    compressors : {name: [label, letters]} of the compressor and those inside it
    """
    common = Estimator.letters.items()
    letters = experiment.method.estimator.letters.items()
    return {
        "method": _method(experiment.method.name),
        "letters": dict(letter for letter in letters if letter not in common),
        "problem": experiment.problem.title or experiment.problem.name,
        "compressors": {
            c.name: [c.title or c.name, None if c.letters is None else dict(c.letters)]
            for c in experiment.compressors
        },
    }


def of_log(attributes: Mapping[str, Any]) -> Labels:
    """The names in a log, from the attributes of its root."""
    try:
        declared = json.loads(attributes.get("labels", "{}"))
        compressors = {
            name: (str(label), None if letters is None else dict(letters))
            for name, (label, letters) in declared.get("compressors", {}).items()
        }
        letters = dict(declared.get("letters", {}))
        return Labels(declared | {"compressors": compressors, "letters": letters})
    except (AttributeError, RecursionError, TypeError, ValueError):  # a log from anywhere
        return Labels({})


def _method(name: str) -> str:
    return METHODS[name].label if METHODS.knows(name) else name


def _inner(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The compressors inside one."""
    values = (v if isinstance(v, list) else [v] for v in table.values())
    return [item for many in values for item in many if isinstance(item, dict)]


def _shown(key: str, value: Any, letters: Mapping[str, str] | None) -> bool:
    if letters is not None:
        return key in letters
    return isinstance(value, int | float) and not isinstance(value, bool)


def parameter(key: str, value: Any, letters: Mapping[str, str] | None = None) -> str:
    """A parameter and its value: ``K = 10``, ``γ = 4 × theory``, ``bias``."""
    symbol = (letters or {}).get(key) or PARAMETERS.get(key, key.replace("_", " "))
    if value is True or value is False:
        return symbol if value else f"no {symbol}"
    return f"{symbol} = {number(value)}"


def number(value: Any) -> str:
    """A value, floats with four digits, multiples of the theory step as ``4 × theory (PL)``."""
    if isinstance(value, dict) and "theory" in value:
        under = f" ({value['condition']})" if "condition" in value else ""
        return f"{number(value['theory'])} × theory{under}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def flatten(tables: Tables) -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``; ``method.stepsize`` stays one value."""
    return schema.flatten(tables, "method.stepsize")


def varying(many: Sequence[dict[str, Any]]) -> list[str]:
    """Keys whose values are not equal in all flat tables; a missing key differs from any value."""
    names = dict.fromkeys(name for one in many for name in one)
    return [n for n in names if len({repr(one[n]) if n in one else None for one in many}) > 1]


def by_key(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """{key(item): those items}, in the order of their first."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def differences(many: Sequence[Tables]) -> list[dict[str, Any]]:
    """For each of ``many`` its values of the keys that vary, by TABLE.KEY."""
    flat = [flatten(tables) for tables in many]
    varied = varying(flat)
    return [{n: one[n] for n in varied if n in one} for one in flat]


def headline(experiment: Experiment, started: int, log: Path) -> str:
    """Method, compressor, problem, n, d if it is known, rounds, ranks, and where the log goes.

    started : ranks of the job, of which the experiment may use fewer
    """
    names, table = Labels(declared(experiment)), experiment.table
    ranks, d = ranks_of(experiment) or started, dimension(experiment)
    n = experiment.problem.workers or worker_ranks(ranks, experiment.run.layout)
    parts = [
        names.method(experiment.method.name),
        names.compressor(table["compressor"]),
        names.problem(table["problem"]),
        f"n = {n}",
        f"d = {d}" if d else "",
        f"{experiment.run.rounds} rounds",
        f"{ranks} rank{'' if ranks == 1 else 's'}",
    ]
    return f"{', '.join(filter(None, parts))}; log {log}"


def dimension(experiment: Experiment) -> int:
    """d, as far as it is known before the problem is loaded; else 0."""
    problem = experiment.problem
    if hasattr(problem, "dimension"):
        return int(problem.dimension)
    data = lookup(str(getattr(problem, "data", "")))
    features = data.features if data is not None and data.kind == "libsvm" else 0
    if data is not None and hasattr(problem, "code_size"):
        return 2 * data.features * problem.code_size
    return features + bool(features and getattr(problem, "bias", False))


def ranks_of(experiment: Experiment) -> int | None:
    """How many ranks `run.ranks` asks for; None for all of the job.

    Where the ranks decide the number of workers, too, "workers" are all of them.
    """
    wanted = experiment.run.ranks
    if wanted == "all":
        return None
    if wanted == "workers":
        n, layout = experiment.problem.workers, experiment.run.layout
        return None if n is None else n + (layout == "dedicated")  # the server has its own
    return wanted


def too_few(needed: int, started: int) -> str:
    """The line about a job that has fewer ranks than a run needs."""
    have = f"this job has {started}"
    return f"run.ranks: the run needs {needed} ranks, {have}; start it with mpirun -n {needed}"
