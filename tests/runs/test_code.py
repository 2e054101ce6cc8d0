"""Which code an experiment executes, against the interpreter's own account of it."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path

import pytest
from mpi4py import MPI

from mpisim.core import imports
from mpisim.core.errors import InputError
from mpisim.methods.method_table import METHODS, UNCOMPRESSED
from mpisim.runs import identity, plugins
from mpisim.runs.experiment import parse
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.stop import StopSignals
from tests.compressors.cases import CASES
from tests.helpers import sampled, table
from tests.resumes import KEYS, SMOOTH
from tests.runs.kernels import forget_kernels, kernels

COMPRESSORS = [case.table for case in CASES] + [SMOOTH]
# What writes and reports, and decides no value.
REPORTS = (
    "mpisim.comm.job",
    "mpisim.core.machine",
    "mpisim.core.numerics.processor",
    "mpisim.runs.attributes",
    "mpisim.runs.checkpoint",
    "mpisim.runs.ctrl_c",
    "mpisim.runs.experiment",
    "mpisim.runs.host",
    "mpisim.runs.identity",
    "mpisim.runs.labels",
    "mpisim.runs.log.schema",
    "mpisim.runs.progress",
    "mpisim.runs.record",
    "mpisim.runs.rehearsal",
    "mpisim.runs.resume",
    "mpisim.runs.stop",
)


def executed(tables: dict) -> set[str]:
    """The package's modules of all functions and kernels that a run calls."""
    names: set[str] = set()

    def note(frame, event, argument) -> None:
        if event == "call":
            names.add(frame.f_globals.get("__name__", ""))

    experiment = parse(tables)
    forget_kernels()
    sys.setprofile(note)
    try:
        with StopSignals() as signals:
            run_rounds(Setup(experiment, MPI.COMM_SELF), Output(None, quiet=True), signals)
    finally:
        sys.setprofile(None)
    names |= {kernel.__module__ for kernel in kernels() if kernel.overloads}
    return {name for name in names if name.startswith("mpisim.")}


def experiments():
    """Every method with one compressor, and every compressor with one method."""
    for method in METHODS:
        keys = {"name": method, "stepsize": 0.01} | KEYS.get(method, {})
        compressor = None if method in UNCOMPRESSED else {"name": "topk", "k": 12}
        yield table(keys, compressor, workers=5, rounds=3, columns=["pi"])
    for compressor in COMPRESSORS:
        yield table({"name": "marina", "stepsize": "theory"}, compressor, workers=5, rounds=3)
        quadratic = {"name": "quadratic", "workers": 5, "dimension": 12, "noise": 0.1}
        dcgd = table({"name": "dcgd", "stepsize": 0.1}, compressor, rounds=3)
        yield dcgd | {"problem": quadratic}


def test_no_module_that_runs_is_missing():
    missing, tried = {}, 0
    for tables in sampled(experiments(), 40):
        try:
            ran = executed(tables)
        except InputError:
            continue
        tried += 1
        left = ran - set(identity.modules(parse(tables))) - set(REPORTS)
        if left:
            missing[str(tables["method"]) + str(tables.get("compressor"))] = left
    assert tried > 10
    assert missing == {}


def test_an_edit_shows_in_its_module_only(tmp_path, monkeypatch):
    experiment = parse(table({"name": "dcgd", "stepsize": 0.1}, {"name": "randk", "k": 3}))
    before = identity.modules(experiment)
    shutil.copytree(imports.PACKAGE, tmp_path / "mpisim", ignore=shutil.ignore_patterns("*.nb?"))
    monkeypatch.setattr(imports, "PACKAGE", tmp_path / "mpisim")
    assert identity.modules(experiment) == before
    edited = tmp_path / "mpisim" / "core" / "numerics" / "sums.py"
    edited.write_text(edited.read_text() + "# an edit\n")
    for cached in (imports.digest, imports.imports):
        cached.cache_clear()
    after = identity.modules(experiment)
    assert {name for name in before if before[name] != after[name]} == {"mpisim.core.numerics.sums"}


PLUGIN = """
from {helper} import scale
from mpisim import Compressor, compressor
from mpisim.compressors.base import Identity

@compressor("{name}")
class Mine(Identity):
    pass
"""


@pytest.fixture
def plugin(tmp_path):
    """The path of a plugin with a neighbour that it imports, and one that it does not."""
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    path, helper = tmp_path / f"{name}.py", f"helper_of_{name}"
    path.write_text(PLUGIN.format(helper=helper, name=name))
    (tmp_path / f"{helper}.py").write_text("scale = 2\n")
    (tmp_path / "stranger.py").write_text("scale = 3\n")
    return path


def test_a_plugin_counts_with_the_neighbours_that_it_imports(plugin):
    plugins.load([str(plugin)])
    tables = table({"name": "dcgd", "stepsize": 0.1}, {"name": plugin.stem})
    found = identity.modules(parse(tables))
    own = {name for name in found if not name.startswith("mpisim")}
    assert own == {plugin.stem, f"helper_of_{plugin.stem}"}
    other = identity.modules(parse(tables | {"compressor": {"name": "identity"}}))
    assert all(name.startswith("mpisim") for name in other)
    named = identity.modules(
        parse(tables | {"compressor": {"name": "identity"}, "plugin": str(plugin)})
    )
    assert plugin.stem in named  # it is asked for, whatever it is for


def test_the_data_files_that_a_plugin_declares_count(plugin):
    plugin.write_text(plugin.read_text() + 'DATA_FILES = ("weights.npy",)\n')
    plugins.load([str(plugin)])
    experiment = parse(table({"name": "dcgd", "stepsize": 0.1}, {"name": plugin.stem}))
    with pytest.raises(InputError, match=rf"^plugin {plugin.stem}: DATA_FILES: .*weights\.npy"):
        identity.modules(experiment)
    found = []
    for content in (b"1", b"2"):
        plugin.with_name("weights.npy").write_bytes(content)
        imports.digest.cache_clear()
        found.append(identity.modules(experiment).items())
    assert [name for name, _ in found[0] - found[1]] == [f"{plugin.stem}/weights.npy"]


def test_what_is_installed_beside_a_plugin_is_not_its_neighbour(tmp_path, monkeypatch):
    """The first plugin lies where .venv is, as in a checkout; the second is itself installed."""
    site = tmp_path / ".venv" / "lib" / "site-packages"
    (site / "installed_for_test").mkdir(parents=True)
    (site / "installed_for_test" / "__init__.py").write_text("")
    text = "import json\nimport installed_for_test\nimport helper_for_test\n"
    for place in (tmp_path, site):
        (place / f"plugin_in_{place.name.replace('-', '_')}.py").write_text(text)
        monkeypatch.syspath_prepend(place)
    (tmp_path / "helper_for_test.py").write_text("")
    plugin = f"plugin_in_{tmp_path.name}"
    for name in (plugin, "plugin_in_site_packages"):
        importlib.import_module(name)
    path = Path(sys.modules[plugin].__file__)
    assert imports.imports(plugin, path) == ("helper_for_test",)
    path = Path(sys.modules["plugin_in_site_packages"].__file__)
    assert imports.imports("plugin_in_site_packages", path) == ()
