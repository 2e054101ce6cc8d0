"""Experiment files, --set, and back to TOML; labels; what is refused with one line."""

import json
import os
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mpisim.comm import communicators
from mpisim.core.errors import InputError
from mpisim.runs.experiment import Experiment, parse, read
from mpisim.runs.labels import ranks_of
from mpisim.runs.setup import ProblemCache
from tests.helpers import run_tables, table

FILE = """
title = "a test"
[problem]
name = "logistic"
data = "sample"
[method]
name = "marina"
stepsize = { theory = 2 }
[compressor]
name = "randk"
k = 3
[run]
rounds = 5
"""


def test_back_to_toml_and_again(tmp_path):
    (tmp_path / "a.toml").write_text(FILE)
    words = ["run.wire=float64", "problem.l2=1e-3", "problem.workers=4"]
    experiment = read(tmp_path / "a.toml", words)
    text = experiment.to_toml()
    assert parse(tomllib.loads(text)).to_toml() == text
    resolved = tomllib.loads(text)
    assert resolved["run"]["wire"] == "float64" and resolved["problem"]["l2"] == 1e-3
    assert resolved["method"]["p"] == "theory" and resolved["method"]["stepsize"] == {"theory": 2}
    assert experiment.method.multiple() == 2.0


PLUGIN = """
import mpisim
@mpisim.compressor("pickled-identity")
class Pickled(mpisim.Compressor):
    form = compress = None
"""


def test_other_processes_take_an_experiment(tmp_path):
    """multiprocessing, concurrent.futures and mpi4py.futures pickle what they hand over."""
    (tmp_path / "pickled_plugin.py").write_text(PLUGIN)
    tables = table({"name": "marina", "stepsize": {"theory": 2}}, {"name": "pickled-identity"})
    experiment = parse(tables | {"plugin": str(tmp_path / "pickled_plugin.py")})
    code = "import sys, pickle; print(pickle.load(sys.stdin.buffer).to_toml())"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "check": True}
    command = [sys.executable, "-c", code]
    message = subprocess.run(command, input=pickle.dumps(experiment), **options)
    assert message.stdout.decode().strip() == experiment.to_toml().strip()


def test_an_experiment_equals_those_of_equal_tables():
    experiment = parse(table({"name": "marina", "stepsize": 0.1}, {"name": "randk", "k": 2}))
    assert pickle.loads(pickle.dumps(experiment)) == experiment
    tables = tomllib.loads(experiment.to_toml())
    assert Experiment.from_dict(tables) == experiment
    tables["run"]["seed"] += 1
    assert Experiment.from_dict(tables) != experiment


TEXT = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8")


CASES = [line.split(" -> ") for line in TEXT.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(("given", "says"), CASES)
def test_what_is_not_allowed(given, says):
    tables = table({"name": "gd", "stepsize": 0.1}, rounds=1)
    for name, keys in json.loads(given).items():
        tables[name] = tables.get(name, {}) | keys
    if tables["problem"]["name"] == "quadratic":
        del tables["problem"]["data"]
    with pytest.raises(InputError) as error:
        run_tables(tables)
    assert re.search(says, str(error.value)) and "\n" not in str(error.value)


GD = {"name": "gd", "stepsize": 0.1}


@pytest.mark.parametrize("layout", ["shared", "dedicated"])
def test_how_many(layout):
    for given, ranks in ((None, None), (2, 2), ("workers", 6 + (layout == "dedicated"))):
        tables = table(GD, workers=6, layout=layout, **({"ranks": given} if given else {}))
        assert ranks_of(parse(tables)) == ranks
    blocks = np.diff(communicators.starts(6, ranks, layout))
    assert blocks.max() == 1 and blocks.sum() == 6
    del tables["problem"]["workers"]
    assert ranks_of(parse(tables)) is None  # a worker for each rank: as many as there are


def test_ranks_that_keep_a_problem_must_all_keep_it():
    """Rank 3 has workers 3 and 4 in both layouts, but the others do not have the same ones."""
    experiment, cache = parse(table(GD, workers=5)), ProblemCache()
    stars = [
        SimpleNamespace(n=5, rank=3, first=3, m=2, starts=communicators.starts(5, 4, layout))
        for layout in ("shared", "dedicated", "dedicated")
    ]
    problems = [cache.problem(experiment, star) for star in stars]
    assert problems[0] is not problems[1] and problems[1] is problems[2]
