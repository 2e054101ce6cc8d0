"""Experiment files, --set, and back to TOML."""

import os
import pickle
import subprocess
import sys
import tomllib

import pytest

from mpisim.core.errors import InputError
from mpisim.runs.experiment import Experiment, parse, read
from tests.helpers import table

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
    experiment = read(
        tmp_path / "a.toml", ["run.wire=float64", "problem.l2=1e-3", "problem.workers=4"]
    )
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
    k: int = 1
    form = compress = None
"""


def test_other_processes_take_an_experiment(tmp_path):
    """multiprocessing, concurrent.futures and mpi4py.futures pickle what they hand over."""
    (tmp_path / "pickled_plugin.py").write_text(PLUGIN)
    tables = table({"name": "marina", "stepsize": {"theory": 2}}, {"name": "pickled-identity"})
    experiment = parse(tables | {"plugin": str(tmp_path / "pickled_plugin.py")})
    code = "import sys, pickle; print(pickle.load(sys.stdin.buffer).to_toml())"
    said = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(experiment),
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])},
    )
    assert said.stdout.decode().strip() == experiment.to_toml().strip()


def test_an_experiment_equals_those_of_equal_tables():
    experiment = parse(table({"name": "marina", "stepsize": 0.1}, {"name": "randk", "k": 2}))
    assert pickle.loads(pickle.dumps(experiment)) == experiment
    tables = tomllib.loads(experiment.to_toml())
    assert Experiment.from_dict(tables) == experiment
    tables["run"]["seed"] += 1
    assert Experiment.from_dict(tables) != experiment


@pytest.mark.parametrize("key", ["title", "problem", "method", "compressor", "run"])
@pytest.mark.parametrize(
    "value", [1, [1], "x", True, {"name": 3}, {"name": []}, {"name": "gd", "stepsize": [1]}]
)
def test_wrong_types_anywhere(key, value):
    tables = table({"name": "dcgd", "stepsize": 1.0}, {"name": "natural"}) | {"title": "t"}
    if key == "title" and value == "x":
        return
    with pytest.raises(InputError):
        parse(tables | {key: value})
