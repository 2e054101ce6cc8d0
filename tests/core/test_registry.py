"""Registries load what is asked for; specs are frozen, and what is bound is another object."""

import dataclasses
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from mpi4py import MPI

from mpisim.compressors import COMPRESSORS
from mpisim.core import imports
from mpisim.core.registry import Spec
from mpisim.methods.estimators import ESTIMATORS
from mpisim.problems import PROBLEMS
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests.helpers import table

MARINA = {"name": "marina", "stepsize": 0.1}


def experiment(k: int):
    return parse(
        {
            "problem": {"name": "quadratic", "dimension": 50, "workers": 6},
            "method": MARINA,
            "compressor": {"name": "randk", "k": k},
            "run": {"rounds": 1},
        }
    )


def probability(experiment) -> float:
    return Setup(experiment, MPI.COMM_SELF).estimator.p


def test_a_spec_can_be_used_again():
    """p = K / d is worked out for each compressor: it used to stay at the first one's."""
    few = experiment(5)
    many = dataclasses.replace(few, compressor=experiment(25).compressor)
    assert [probability(few), probability(many), probability(few)] == [0.1, 0.5, 0.1]


@pytest.mark.parametrize("part", ["problem", "compressor", "run"])
def test_what_a_table_becomes_is_frozen(part):
    experiment = parse(table(MARINA, {"name": "randk", "k": 5}))
    with pytest.raises(dataclasses.FrozenInstanceError):
        getattr(experiment, part).k = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        experiment.method.estimator.p = 0.5


def test_a_thawed_copy_leaves_the_spec_frozen():
    spec = Spec()
    spec.rows = np.zeros(3)
    spec.freeze()
    copy = spec.thawed()
    copy.rows = None
    assert spec.rows is not None and copy.thawed() is not copy
    again = pickle.loads(pickle.dumps(experiment(5)))
    assert again.compressor.k == 5
    for frozen in (spec, again.compressor, again.problem, again.method.estimator):
        with pytest.raises(dataclasses.FrozenInstanceError):
            frozen.rows = None


ROOMS = {
    "mpisim.compressors": COMPRESSORS,
    "mpisim.problems": PROBLEMS,
    "mpisim.methods.estimators": ESTIMATORS,
}


@pytest.mark.parametrize("room", ROOMS)
def test_a_registry_says_where_each_class_is(room):
    registered = re.compile(r'^@(?:compressor|problem|estimator|method)\("([^"]+)"', re.MULTILINE)
    folder = imports.PACKAGE.parent.joinpath(*room.split("."))
    found = {
        name: f"{room}.{'.'.join(path.relative_to(folder).with_suffix('').parts)}"
        for path in folder.rglob("*.py")
        for name in registered.findall(path.read_text())
    }
    known = {name: kind.__module__ for name, kind in ROOMS[room].items()}
    assert len(found) > 5 and known.items() >= found.items()


REPLACED = """
import sys
from mpisim.compressors import COMPRESSORS, Compressor, compressor
assert set(COMPRESSORS) > {"randk", "topk"} and "topk" in COMPRESSORS
assert "mpisim.compressors.sparse" not in sys.modules
@compressor("randk")
class Mine(Compressor): pass
assert COMPRESSORS["topk"].__module__ == "mpisim.compressors.sparse"
assert COMPRESSORS["randk"] is Mine
"""


def test_a_plugin_that_replaces_a_class_comes_last():
    subprocess.run([sys.executable, "-c", REPLACED], check=True, cwd=imports.PACKAGE.parent)
