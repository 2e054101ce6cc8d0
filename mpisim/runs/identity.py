"""What must agree between two parts of a run, or between a log and the run that would repeat it.

The experiment, as it is resolved, must agree in any case. What executes it (modules, libraries, the
processor) may differ if a user accepts the change, which is then recorded.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from typing import Any

from mpisim.core import processor
from mpisim.core.errors import InputError
from mpisim.core.schema import flat
from mpisim.runs import code
from mpisim.runs.experiment import Experiment
from mpisim.runs.sysinfo import version
from mpisim.runs.tables import BUDGET

# What may differ on resume, with the keys in such a table.
FREE = (*BUDGET, "run.checkpoint_seconds", "run.layout", "run.ranks", "title", "plugin")
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite")  # their versions may change the last bits
SHOWN = 3  # differences in a message
ACCEPTABLE = ("module", "library", "processor")  # the first words of what executes an experiment


def resolved(
    table: dict[str, Any], parameters: dict[str, Any], gamma: float, problem: str, n: int
) -> dict[str, str]:
    """The experiment, by name.

    table : the experiment's; parameters, gamma : the resolved parameters of the method, and its
    step; problem : the identity of the data; n : workers.
    """
    found = {"problem identity": problem, "workers": str(n)}
    found |= must_agree(flat(table))
    found |= flat({"method": {name.rstrip("_"): value for name, value in parameters.items()}})
    return found | {"step size": repr(float(gamma))}


def must_agree(table: Mapping[str, str]) -> dict[str, str]:
    """A flat table without what may differ on resume."""
    tables = tuple(f"{name}." for name in FREE)
    return {n: v for n, v in table.items() if n not in FREE and not n.startswith(tables)}


def executed_by(experiment: Experiment) -> dict[str, str]:
    """What executes an experiment in this process, by name."""
    modules = code.modules(experiment)
    found = {f"module {name}": text for name, text in modules.items()}
    found |= {f"library {name}": version(name) for name in LIBRARIES}
    return found | {"processor": _processor(experiment, modules)}


def _processor(experiment: Experiment, modules: Iterable[str]) -> str:
    """The processor; only its kind where the bits are the same on all of that kind.

    Of a plugin nobody knows this.
    """
    parts = [experiment.problem, *code.nested(experiment.compressor)]
    ours = all(name.partition(".")[0] == "mpisim" for name in modules)
    if ours and all(part.portable for part in parts):
        return platform.machine()
    return "; ".join(processor.facts().values())


def require_same(
    where: object, theirs: Mapping[str, str], ours: Mapping[str, str], accept: bool = False
) -> str:
    """The accepted differences as one line of text, or `InputError` about what must agree.

    where : the file that holds ``theirs``; accept : whether its user accepts other code
    """
    unlike = _unlike(theirs, ours)
    for name in (name for name in unlike if not _acceptable(name)):
        raise InputError(f"{where}: has {name} = {unlike[name][0]}, this run has {unlike[name][1]}")
    if unlike and not accept:
        raise InputError(f"{where}: {other_code(theirs, ours)}; --accept-changes continues")
    return ", ".join(_told(unlike))


def other_code(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """How what executed a log differs from ``ours``, as text; empty where it does not."""
    told = _told(_unlike(theirs, ours))
    if told and not any(map(_acceptable, theirs)):
        return "does not say what code wrote it"
    more = f", and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return f"was written by other code: {', '.join(told[:SHOWN])}{more}" if told else ""


def _unlike(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    names = dict.fromkeys([*ours, *filter(_acceptable, theirs)])
    pairs = {name: (theirs.get(name, "nothing"), ours.get(name, "nothing")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _told(unlike: Mapping[str, tuple[str, str]]) -> list[str]:
    return [f"{name} ({before} -> {now})" for name, (before, now) in unlike.items()]


def of_log(attributes: Mapping[str, Any]) -> dict[str, str]:
    """`executed_by` as a log's attributes tell it; empty where they do not."""
    try:
        found = json.loads(attributes.get("code", "{}"))
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _acceptable(name: str) -> bool:
    return name.split(" ", 1)[0] in ACCEPTABLE
