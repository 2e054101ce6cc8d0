"""Plugins of installed packages: found when a name is unknown, recorded, and never in the way."""

from __future__ import annotations

import json
import sys

import h5py
import pytest

from mpisim.cli import main
from mpisim.compressors import COMPRESSORS
from mpisim.core import registry
from mpisim.core.errors import InputError
from mpisim.core.registry import Names
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.runs.identity import packages_of
from tests.runs.sweep.support import BASE
from tests.runs.test_plugins import PLUGIN

EXPERIMENT = BASE.replace("randk", "firstk").replace("marina", "ef21").replace('"theory"', "0.1")
METHOD = """
import mpisim
from . import half

@mpisim.method({name!r}, label="Packaged", letters={{"share": "s"}})
class Packaged(mpisim.Estimator):
    share: float = half.HALF

    def start(self, x):
        return self.estimate(x)

    def estimate(self, x):
        return self.share * self.star.average(self.compress(self.oracle.gradients(x)))
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(package, {module: text}, entry points): as pip would; undone afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    registry.forget_packages()

    def make(name: str, files: dict[str, str], entries: str, version: str = "1.2") -> None:
        for file, text in files.items():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text)
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[mpisim.plugins]\n{entries}\n")

    yield make
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    for names in (COMPRESSORS, METHODS, ESTIMATORS):
        for name in {"firstk", "packaged"} & names.loaded().keys():
            del names[name]
    registry.forget_packages()


def test_a_name_of_a_package_is_found_and_its_version_is_in_the_log(install, tmp_path):
    files = {"mpisim_demo/__init__.py": "", "mpisim_demo/half.py": "HALF = 0.5\n"}
    files |= {"mpisim_demo/method.py": METHOD.format(name="packaged"), "first_k.py": PLUGIN}
    install("mpisim-demo", files, "a = first_k\nb = mpisim_demo.method")
    tables = EXPERIMENT.replace('name = "ef21"', 'name = "packaged"')
    (tmp_path / "x.toml").write_text(tables)
    assert main(["run", "x.toml", "--out", "log.h5"]) == 0
    with h5py.File("log.h5") as log:
        assert log.attrs["plugin_packages"] == "mpisim-demo 1.2"
        executed = json.loads(log.attrs["code"])
        assert {"module first_k", "module mpisim_demo.method", "module mpisim_demo.half"} <= set(
            executed
        )
        assert json.loads(log.attrs["labels"])["letters"] == {"share": "s"}
        assert packages_of(executed) == ["mpisim-demo 1.2"]
    assert main(["verify", "log.h5", "--rerun"]) == 0


def test_what_is_known_imports_no_package(install):
    install("mpisim-demo", {"broken.py": "1 / 0\n"}, "x = broken")
    assert COMPRESSORS["randk"].title == "RandK" and METHODS.here("marina")
    assert "broken" not in sys.modules
    for look in (lambda: "nosuch" in COMPRESSORS, lambda: sorted(METHODS), lambda: len(METHODS)):
        said = r"^plugin package mpisim-demo 1\.2: cannot be loaded: .*broken\.py:1: ZeroDivision"
        with pytest.raises(InputError, match=said):
            look()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("randk",), "compressor 'randk' is taken by mpisim; rename it"),
        (("rand-k",), "compressor 'rand-k' is taken by mpisim; rename it"),
        (("firstk", "firstk"), "compressor 'firstk' is taken by demo-0 1.2; rename it"),
    ],
)
def test_a_name_that_is_taken_is_one_line(install, names, said):
    for i, name in enumerate(names):
        files = {f"plugin_{i}.py": PLUGIN.replace("firstk", name)}
        install(f"demo-{i}", files, f"x = plugin_{i}")
    with pytest.raises(InputError) as error:
        list(COMPRESSORS)
    assert str(error.value).startswith("plugin package demo-")
    assert str(error.value).endswith(said) and "\n" not in str(error.value)
    assert COMPRESSORS["randk"].__module__ == "mpisim.compressors.sparse"


@pytest.mark.parametrize(
    ("registry", "alias", "name"),
    [
        (COMPRESSORS, "rand-k", "randk"),
        (COMPRESSORS, "top-k", "topk"),
        (COMPRESSORS, "perm-k", "permk"),
        (COMPRESSORS, "rankk", "rank-k"),
        (METHODS, "ef21-bc", "ef21-2way"),
    ],
)
def test_other_spellings(registry, alias, name):
    assert registry[alias] is registry[name] and alias in registry
    assert alias not in list(registry) and registry.canonical(alias) == name


def test_a_plugin_may_take_another_spelling_for_its_own():
    names = Names("thing", {"a": 1}, {"b": "a"})
    assert names["b"] == 1
    names["b"] = 2
    assert (names["a"], names["b"], names.canonical("b")) == (1, 2, "b")
    del names["b"]
    assert not names.here("b")
