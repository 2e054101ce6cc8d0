"""Names and tables to objects; plugins of installed packages; what was probably meant."""

import dataclasses
import json
import os
import pickle
import re
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import tomli_w

import mpisim
from mpisim.cli import main
from mpisim.comm.communicators import OneProcess
from mpisim.compressors import COMPRESSORS, make
from mpisim.core import registry
from mpisim.core.errors import InputError
from mpisim.core.registry import Registry
from mpisim.methods.method_table import METHODS, make_method
from mpisim.runs.experiment import parse, read_toml
from mpisim.runs.identity import packages_of
from mpisim.runs.setup import Setup
from tests.comm.jobs import python
from tests.helpers import table
from tests.problems.test_base import Bowls
from tests.runs.sweep.support import BASE
from tests.runs.test_experiment import PLUGIN

MARINA = {"name": "marina", "stepsize": 0.1}


def test_a_spec_can_be_used_again():
    """p = K / d is worked out for each compressor, and specs are frozen, also once unpickled."""
    quadratic = {"name": "quadratic", "dimension": 50, "workers": 6}
    tables = table(MARINA, {"name": "randk", "k": 5}, rounds=1) | {"problem": quadratic}
    few = pickle.loads(pickle.dumps(parse(tables)))
    many = dataclasses.replace(few, compressor=make({"name": "randk", "k": 25}))
    of_each = [Setup(one, OneProcess()).estimator.p for one in (few, many, few)]
    assert of_each == [0.1, 0.5, 0.1]
    copy = few.problem.thawed()
    copy.rows = None
    assert copy.thawed() is not copy and not hasattr(few.problem, "rows")
    for frozen in (few.compressor, few.problem, few.method.estimator):
        with pytest.raises(dataclasses.FrozenInstanceError):
            frozen.rows = None


REPLACED = """
import sys
from mpisim.compressors import COMPRESSORS, Compressor, compressor
assert set(COMPRESSORS) > {"randk", "topk"} and "topk" in COMPRESSORS
assert "mpisim.compressors.sparse" not in sys.modules
@compressor("randk")
class Mine(Compressor): form = compress = None
assert COMPRESSORS["topk"].__module__ == "mpisim.compressors.sparse"
assert COMPRESSORS["randk"] is Mine
"""


@pytest.mark.parametrize(("keys", "seed"), [({}, 7), ({"seed": 5}, 5)])
def test_the_seed_is_set_unless_it_is_a_key(keys, seed):
    members = {"__annotations__": dict.fromkeys(keys, int), **keys}
    made = mpisim.problem("seeded", label="seeded")(type("Seeded", (Bowls,), members))
    assert made().loaded(2, 0, 2, 7, np.dtype(float)).seed == seed


def test_a_plugin_that_replaces_a_class_comes_last():
    python(REPLACED)


EXPERIMENT = BASE.replace("randk", "firstk").replace("marina", "packaged")
METHOD = """
import mpisim
from mpisim.methods.estimators.feedback import EF21
from . import half

@mpisim.method("packaged", label="Packaged", letters={"share": "s"})
class Packaged(EF21):
    share: float = half.HALF
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(package, {module: text}, entry points): as pip would; undone afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_state", registry._State())

    def make(name: str, files: dict[str, str], entries: str, version: str = "1.2") -> None:
        for file, text in files.items():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text)
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[mpisim.plugins]\n{entries}\n")

    return make


def test_a_name_of_a_package_is_resolved_and_its_version_is_in_the_log(install, tmp_path, command):
    files = {"mpisim_demo/__init__.py": "", "mpisim_demo/half.py": "HALF = 0.5\n"}
    files |= {"mpisim_demo/method.py": METHOD, "first_k.py": PLUGIN}
    install("mpisim-demo", files, "a = first_k\nb = mpisim_demo.method")
    (tmp_path / "x.toml").write_text(EXPERIMENT.replace('"theory"', "0.1"))
    command("run", "x.toml", "--out", "log.h5")
    with h5py.File("log.h5") as log:
        assert log.attrs["plugin_packages"] == "mpisim-demo 1.2"
        code = json.loads(log.attrs["code"])
        names = ("first_k", "mpisim_demo.method", "mpisim_demo.half")
        assert {f"module {name}" for name in names} <= set(code)
        assert json.loads(log.attrs["labels"])["letters"] == {"share": "s"}
        assert packages_of(code) == ["mpisim-demo 1.2"]
    command("verify", "log.h5", "--rerun")


def test_a_built_in_name_imports_no_package(install):
    install("mpisim-demo", {"broken.py": "1 / 0\n"}, "x = broken")
    assert COMPRESSORS["randk"].title == "RandK" and METHODS.knows("marina")
    assert "broken" not in sys.modules
    for look in (lambda: "nosuch" in COMPRESSORS, lambda: sorted(METHODS), lambda: len(METHODS)):
        message = r"^plugin package mpisim-demo 1\.2: cannot be loaded: .*broken\.py:1: ZeroDiv"
        with pytest.raises(InputError, match=message):
            look()


@pytest.mark.parametrize("names", [("randk",), ("rand-k",), ("firstk", "firstk")])
def test_a_name_that_is_taken_is_one_line(install, names):
    for i, name in enumerate(names):
        files = {f"plugin_{i}.py": PLUGIN.replace("firstk", name)}
        install(f"demo-{i}", files, f"x = plugin_{i}")
    with pytest.raises(InputError) as error:
        list(COMPRESSORS)
    owner = "demo-0 1.2" if names[1:] else "mpisim"
    line = rf"plugin package demo-[^\n]* compressor '{names[0]}' is taken by {owner}; rename it"
    assert re.fullmatch(line, str(error.value))
    assert COMPRESSORS["randk"].__module__ == "mpisim.compressors.sparse"


def test_a_property_without_its_decorator_is_one_line():
    """Also of a mixin; what is none of mpisim's may be a method."""
    shared = {"compress": None, "form": None}
    mixin = type("Mixin", (), {"omega": lambda self: 1.0})
    made = type("Mine", (mpisim.Compressor,), shared | {"omega": mixin.omega})
    for cls in (made, type("Mine", (mixin, mpisim.Compressor), shared)):
        with pytest.raises(InputError, match=r"Mine\.omega: is a value, and no method; write"):
            mpisim.compressor("mine")(cls)
    with pytest.raises(InputError, match=r"Mine\.columns: is a value, and no method; write"):
        mpisim.metric("mine")(type("Mine", (mpisim.Metric,), {"columns": lambda self: ()}))
    assert "mine" not in COMPRESSORS
    hooks = type("Hooks", (), {"hook": None})
    mpisim.compressor("mine")(type("Mine", (hooks, mpisim.Compressor), shared | {"hook": print}))


def test_other_spellings():
    """Which a plugin may take."""
    for names, alias, name in (
        *((COMPRESSORS, "rand-k", "randk"), (COMPRESSORS, "top-k", "topk")),
        *((COMPRESSORS, "perm-k", "permk"), (COMPRESSORS, "rankk", "rank-k")),
        (METHODS, "ef21-bc", "ef21-2way"),
    ):
        assert names[alias] is names[name] and alias in names
        assert alias not in list(names) and names.canonical(alias) == name
    names = Registry("thing", {"a": 1}, {"b": "a"})
    names["b"] = 2
    assert (names["a"], names["b"], names.canonical("b")) == (1, 2, "b")
    del names["b"]
    assert not names.knows("b")


def test_a_default_of_no_key_is_refused():
    """Where a table replaces a half, keys of the other one may be left over."""

    @mpisim.method("mine", optimizer="heavy-ball", alfa=0.3, lambda_=0.2)
    class Mine(mpisim.Estimator):
        alpha: float = 0.5
        lambda_: float = 0.1
        start = estimate = None

    with pytest.raises(InputError, match=r"^method\.alfa: unknown key for 'mine'; did you mean 'a"):
        make_method({"name": "mine", "stepsize": 0.1})
    assert make_method({"name": "mine", "stepsize": 0.1, "optimizer": "gd"}).optimizer.name == "gd"


ONE = tomli_w.dumps(table({"name": "gd", "stepsize": 0.1}, workers=2, rounds=1))


def test_a_current_folder_that_is_gone_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "one.toml").write_text('plugin = "code.py"\n' + ONE)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for words in (("run", f"{tmp_path}/one.toml"), ("new", "study", "mine")):
        assert main(words) in (1, 2)
        assert re.fullmatch(r"mpisim: .*: No such file or directory\n", capsys.readouterr().err)


@pytest.mark.parametrize("words", [("sweep",), ("tune", "--set", "sweep.seeds=[1]")])
def test_a_pipe_is_read_once(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    reading, writing = os.pipe()
    os.write(writing, f"{ONE}[sweep]\nseeds = [1]\n".encode())
    os.close(writing)
    file = f"/dev/fd/{reading}"
    with monkeypatch.context() as job, pytest.raises(InputError, match="cannot be a pipe"):
        job.setenv("PMI_RANK", "0")
        read_toml(Path(file))  # of which mpirun gives one rank the content, perhaps without its end
    assert main([words[0], file, *words[1:]]) == 0
    os.close(reading)
    assert "mpisim" not in capsys.readouterr().err
