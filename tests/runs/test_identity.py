"""Which code, software and machine a run had, and what must agree to continue it."""

import copy
import importlib
import json
import linecache
import platform
import shutil
import subprocess
import sys
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from random import Random

import pytest

from mpisim.comm.clock import COMPILE
from mpisim.compressors.sparse import RandK
from mpisim.core import imports
from mpisim.core.errors import InputError
from mpisim.methods.method_table import METHODS, needs_compressor
from mpisim.runs import identity
from mpisim.runs.experiment import parse
from mpisim.runs.host import Place, commit, here, hosts, oversubscribed
from tests.compressors.cases import CASES
from tests.helpers import attributes, run_tables, some_of, table
from tests.problems.support import SMALL
from tests.resumes import KEYS, SMOOTH, differences
from tests.runs.support import GD, kernels, refused, run_afresh

PLUGIN = """
from {helper} import scale
from mpisim import compressor
from mpisim.compressors.base import Identity

@compressor("{name}")
class Mine(Identity):
    def compress(self, v, draw):
        return super().compress({factor} * v, draw)
"""
RANDK = table(GD | {"name": "dcgd"}, {"name": "randk", "k": 3})


class Plugin:
    """A plugin in a file, which can be edited between runs as between processes."""

    def __init__(self, folder):
        self.path = folder / f"edited_{folder.name}.py"
        self.edit(1.0)

    def edit(self, factor):
        name = self.path.stem
        self.path.write_text(PLUGIN.format(factor=factor, name=name, helper=f"helper_of_{name}"))
        self.path.with_name(f"helper_of_{name}.py").write_text("scale = 2\n")
        sys.modules.pop(name, None)
        imports.DIGESTS.clear()

    def table(self, rounds=3):
        tables = table(GD | {"name": "dcgd"}, {"name": self.path.stem}, rounds=rounds)
        return tables | {"plugin": str(self.path)}


@pytest.fixture
def plugin(tmp_path):
    return Plugin(tmp_path)


def test_an_edited_plugin_goes_on_only_where_the_change_is_accepted(plugin, log, tmp_path, capfd):
    """The log lists the accepted changes; a complete log of other code is refused, too."""
    full, name = tmp_path / "full.h5", f"module {plugin.path.stem}"
    run_tables(plugin.table(6), full)
    run_tables(plugin.table(3), log)
    plugin.edit(0.5)
    line = rf"{name} \(\w+ -> \w+\); --accept-changes continues; --force"
    for rounds in (6, 3):
        with refused(tmp_path, line):
            run_tables(plugin.table(rounds), log, resume=True)
    plugin.edit(1.0)  # as it was
    run_tables(plugin.table(6), log, resume=True)
    assert differences(full, log) == []
    run_tables(plugin.table(6), log, resume=True)
    assert "complete, done at round 6" in capfd.readouterr().err
    for factor, rounds in ((0.5, 8), (0.25, 10)):
        plugin.edit(factor)
        run_tables(plugin.table(rounds), log, resume=True, accept=True)
    lines = attributes(log)["accepted_changes"].splitlines()
    now = json.loads(attributes(log)["code"])[name]
    assert [line.split(":")[0] for line in lines] == ["round 6", "round 8"]
    assert all(f"{name} (" in line for line in lines) and lines[1].endswith(f"-> {now})")
    for path in tmp_path.glob("full.h5.ckpt*"):
        path.unlink()  # then the log itself is asked
    with refused(tmp_path, line):
        run_tables(plugin.table(6), full, resume=True)


@pytest.mark.parametrize("what", ["module mpisim.core.rng", "library numpy", "processor"])
def test_what_executes_a_run_must_agree(what, monkeypatch, log):
    run_tables(table(GD, rounds=3), log)
    original = identity.executed_by
    for path in ("mpisim.runs.identity", "mpisim.runs.setup"):
        monkeypatch.setattr(f"{path}.executed_by", lambda e: original(e) | {what: "another"})
    with refused(log.parent, rf"{what} \(.* -> another\)"):
        run_tables(table(GD, rounds=3), log, resume=True)
    run_tables(table(GD, rounds=3), log, resume=True, accept=True)


def test_the_processor_counts_where_bits_depend_on_it(plugin, monkeypatch):
    """Not where they are the same on all of its kind; of a plugin nobody knows."""

    def processor(tables):
        return identity.executed_by(parse(tables))["processor"]

    before = processor(RANDK), processor(plugin.table())
    monkeypatch.setattr("mpisim.core.numerics.processor.facts", lambda: {"cpu": "another"})
    assert processor(RANDK) == before[0] == platform.machine()
    assert processor(plugin.table()) == "another" != before[1]
    monkeypatch.setattr(RandK, "portable", False)
    inner = {"name": "compose", "outer": {"name": "permk"}, "inner": {"name": "randk", "k": 3}}
    assert processor(RANDK | {"compressor": inner}) == "another"


# What writes and reports, and decides no value.
REPORTS = """
    comm.job core.machine core.numerics.processor runs.attributes runs.checkpoint runs.ctrl_c
    runs.experiment runs.host runs.identity runs.labels runs.log.schema runs.progress runs.record
    runs.rehearsal runs.resume runs.stop"""


COMPRESSORS = [case.table for case in CASES] + [SMOOTH, {"name": "topk", "k": 20}]


def experiments(method, random):
    """With each compressor and problem, in an order that is drawn."""
    keys = {"name": method, "stepsize": 0.01} | KEYS.get(method, {})
    names = random.sample(["nonconvex-loss", "quadratic", "autoencoder", "logistic"], 4)
    compressors = random.sample(COMPRESSORS, len(COMPRESSORS))
    several = compressors if needs_compressor(method) else 4 * [None]
    for compressor, name in zip(several, cycle(names), strict=False):
        tables = table(keys, compressor, rounds=17, log_every=3, columns=["pi"])
        yield parse(tables | {"problem": {"name": name, "workers": 5} | SMALL[name]})


def executed(experiment):
    """The run, and the package's modules of all functions and kernels that it calls."""
    names = set()

    def note(frame, event, argument):
        if event == "call":
            names.add(frame.f_globals.get("__name__", ""))

    sys.setprofile(note)
    try:
        setup, _ = run_afresh(experiment)
    finally:
        sys.setprofile(None)
    names |= {kernel.__module__ for kernel in kernels() if kernel.overloads}
    return setup, {name for name in names if name.startswith("mpisim.")}


@some_of(5, method=METHODS)
def test_no_module_and_no_kernel_is_missing(method, seed):
    """All modules that run count, and all kernels are compiled before the clock starts.

    With two compressors and problems at most.
    """
    tried, reports = 0, {f"mpisim.{name}" for name in REPORTS.split()}
    for experiment in experiments(method, Random(f"{method} {seed}")):
        with suppress(InputError):
            setup, ran = executed(experiment)
            assert setup.clock.seconds[COMPILE] == 0, experiment.to_toml()
            assert ran <= set(identity.modules(experiment)) | reports, experiment.to_toml()
            tried += 1
        if tried == 2:
            return
    assert tried


def test_an_edit_shows_in_its_module_only(tmp_path, monkeypatch):
    experiment = parse(RANDK)
    before = identity.modules(experiment)
    shutil.copytree(imports.PACKAGE, tmp_path / "mpisim", ignore=shutil.ignore_patterns("*.nb?"))
    monkeypatch.setattr(imports, "PACKAGE", tmp_path / "mpisim")
    assert identity.modules(experiment) == before
    edited = tmp_path / "mpisim" / "core" / "numerics" / "sums.py"
    edited.write_text(edited.read_text() + "# an edit\n")
    imports.DIGESTS.clear()
    imports.imports.cache_clear()
    after = identity.modules(experiment)
    assert {name for name in before if before[name] != after[name]} == {"mpisim.core.numerics.sums"}


def test_what_decides_some_runs_alone_counts():
    tables = RANDK | {"run": RANDK["run"] | {"reference": True}, "fleet": {"links": "mlab:US"}}
    counted = identity.modules(parse(tables)).keys()
    assert {"mpisim.runs.minimiser", "mpisim.comm.fleet/mlab.csv"} <= counted


TYPED = """
from mpisim.compressors.base import Identity, compressor
SCALE = 2.0
class Scaled(Identity):
    levels = [1.0]
@compressor("typed")
class Mine(Scaled):
    shift: float = 0.5
    def compress(self, v, draw):
        return super().compress(SCALE * v + sum(i for i in (0, 1) if i in {0, 2}), draw)
"""
EDITS = ["2.0 -> 3.0", "[1.0] -> [5.0]", "SCALE * v -> SCALE / v", "0.5 -> 0.6", "{0, 2} -> {0, 3}"]


def typed(text, cell):
    """The digest of a class of a notebook, whose module has no file, after an object was copied."""
    exec(compile(text, cell, "exec"), names := {"__name__": "typed_in"})
    copy.copy(names["Mine"]())
    identity._source.cache_clear()
    return identity.code_of(["typed_in"], [names["Mine"]])["typed_in"]


def test_an_edit_of_a_class_in_a_notebook_shows(monkeypatch):
    """Its cell counts, which IPython keeps as lines; without them what was compiled."""
    same = [TYPED, *(TYPED.replace(*edit.split(" -> ")) for edit in EDITS), TYPED]
    digests = []
    for number, text in enumerate(same):
        cell = f"<cell {number}>"
        monkeypatch.setitem(linecache.cache, cell, (len(text), None, text.splitlines(True), cell))
        digests.append(typed(text, cell))
    assert digests[0] == digests[-1] and len(set(digests)) == 1 + len(EDITS)
    seen = [typed(text, "<stdin>") for text in (TYPED, *same[3:])]
    assert seen[0] == seen[-1] and len(set(seen)) == 4


def test_a_plugin_counts_with_the_neighbours_that_it_imports(plugin):
    plugin.path.with_name("stranger.py").write_text("scale = 3\n")
    name, tables, identical = plugin.path.stem, plugin.table(), {"compressor": {"name": "identity"}}

    def modules(tables):
        return {name for name in identity.modules(parse(tables)) if not name.startswith("mpisim")}

    assert modules(tables) == {name, f"helper_of_{name}"}
    assert name in modules(tables | identical)  # it is asked for, whatever it is for
    del tables["plugin"]
    assert modules(tables) == {name, f"helper_of_{name}"} and not modules(tables | identical)


def test_the_data_files_that_a_plugin_declares_count(plugin):
    name = plugin.path.stem
    plugin.path.write_text(plugin.path.read_text() + 'DATA_FILES = ("weights.npy",)\n')
    experiment = parse(plugin.table())
    with pytest.raises(InputError, match=rf"^plugin {name}: DATA_FILES: .*weights\.npy"):
        identity.modules(experiment)
    result = []
    for content in (b"1", b"2"):
        plugin.path.with_name("weights.npy").write_bytes(content)
        imports.DIGESTS.clear()
        result.append(identity.modules(experiment).items())
    assert [file for file, _ in result[0] - result[1]] == [f"{name}/weights.npy"]


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
    names = {f"plugin_in_{tmp_path.name}": ("helper_for_test",), "plugin_in_site_packages": ()}
    for name, neighbours in names.items():
        path = Path(importlib.import_module(name).__file__)
        assert imports.imports(name, path) == neighbours


FOUR = {0, 1, 2, 3}


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    done = subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True)
    return done.stdout.decode().strip()


def test_commit_and_dirty_flag(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")

    def require(expected):
        commit.cache_clear()
        assert commit(package) == expected

    git(tmp_path, "init", "-q")
    require({})  # inside a repository that does not keep it, as an installed one may be
    git(tmp_path, "add", "package")
    git(tmp_path, "commit", "-qm", "one")
    head = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "elsewhere").write_text("not the package")
    (package / "untracked.py").write_text("")
    require({"git_commit": head, "git_dirty": False})
    (package / "__init__.py").write_text("edited = 1\n")
    require({"git_commit": head, "git_dirty": True})


@pytest.mark.parametrize(
    ("places", "more"),
    [
        ([("a", "a", FOUR)] * 4, False),
        ([("a", "a", FOUR)] * 5, True),
        ([("a", "a", {i}) for i in range(4)], False),  # each bound to a core of its own
        ([("a", "a", {0})] * 2, True),  # bound to the same
        ([("a", "a", {0, 1})] * 2 + [("b", "b", {0, 1})] * 2, False),
        ([("a", "a", {0, 1})] * 3 + [("b", "b", FOUR)], True),  # of one of two machines
        ([(name, "m", {0, 1}) for name in "abc"], True),  # containers on one machine
    ],
)
def test_ranks_and_cores(places, more):
    assert oversubscribed([Place(h, m, frozenset(c)) for h, m, c in places]) == more


def test_the_log_says_so(log):
    place = here()
    assert place.cores and not oversubscribed([place])
    assert oversubscribed([place] * (len(place.cores) + 1))
    run_tables(table(GD, rounds=2), log)
    of_log = attributes(log)
    assert of_log["oversubscribed"] == 0 and of_log["hosts"] == hosts([place])
