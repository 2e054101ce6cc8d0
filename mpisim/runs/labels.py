"""The names that an experiment's classes have in figures, which its log keeps.

So the curves of a plugin are labelled wherever its logs are read, without the plugin.
"""

from __future__ import annotations

import json
from typing import Any

from mpisim.compressors.base import Compressor
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.names import METHODS
from mpisim.runs.code import nested
from mpisim.runs.experiment import Experiment


def labels_of(experiment: Experiment) -> str:
    """The log attribute ``labels``, JSON.

    method, problem : their labels
    letters : {key: letter} of the method's parameters
    compressors : {name: [label, letters]} of the compressor and those inside it
    """
    name, estimator = experiment.method.name, type(experiment.method.estimator)
    declared = {
        "method": METHODS[name].label if METHODS.here(name) else name,
        "letters": own_letters(estimator),
        "problem": experiment.problem.title or experiment.problem.name,
        "compressors": {c.name: declared_by(type(c)) for c in nested(experiment.compressor)},
    }
    return json.dumps(declared, ensure_ascii=False)


def own_letters(estimator: type[Estimator]) -> dict[str, str]:
    """The letters that a method declares, without those that all methods have in tables."""
    common = Estimator.letters.items()
    return {key: letter for key, letter in estimator.letters.items() if (key, letter) not in common}


def declared_by(compressor: type[Compressor]) -> list[Any]:
    """Label and letters of a compressor's class."""
    letters = compressor.letters
    return [compressor.title or compressor.name, None if letters is None else dict(letters)]
