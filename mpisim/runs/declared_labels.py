"""The names that the classes of an experiment declare for figures."""

from __future__ import annotations

from typing import Any

from mpisim.compressors.base import Compressor
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.names import METHODS
from mpisim.runs.code import nested
from mpisim.runs.experiment import Experiment


def declared(experiment: Experiment) -> dict[str, Any]:
    """What the log attribute ``labels`` holds as JSON, for `mpisim.runs.labels.Labels`.

    method, problem : their labels
    letters : {key: letter} of the method's parameters
    compressors : {name: [label, letters]} of the compressor and those inside it
    """
    name, estimator = experiment.method.name, type(experiment.method.estimator)
    return {
        "method": METHODS[name].label if METHODS.here(name) else name,
        "letters": _own_letters(estimator),
        "problem": experiment.problem.title or experiment.problem.name,
        "compressors": {c.name: _of_class(type(c)) for c in nested(experiment.compressor)},
    }


def _own_letters(estimator: type[Estimator]) -> dict[str, str]:
    """The letters that a method declares, without those that all methods have in tables."""
    common = Estimator.letters.items()
    return {key: letter for key, letter in estimator.letters.items() if (key, letter) not in common}


def _of_class(compressor: type[Compressor]) -> list[Any]:
    """Label and letters of a compressor's class."""
    letters = compressor.letters
    return [compressor.title or compressor.name, None if letters is None else dict(letters)]
