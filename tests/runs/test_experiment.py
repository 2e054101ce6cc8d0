"""Experiment files, --set, and back to TOML; labels; plugins; what is refused with one line."""

import importlib
import json
import pickle
import re
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import tomli_w

import mpisim
from mpisim.analysis.run_groups import common_title, group_runs
from mpisim.analysis.show import show_text
from mpisim.comm import communicators
from mpisim.compressors import COMPRESSORS
from mpisim.core import imports
from mpisim.core.errors import InputError
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from mpisim.problems.quadratic import Quadratic
from mpisim.runs import plugins
from mpisim.runs.experiment import Experiment, parse, read
from mpisim.runs.labels import ranks_of
from mpisim.runs.log import reader
from mpisim.runs.setup import ProblemCache
from tests.helpers import attributes, run_tables, table
from tests.runs.support import GD
from tests.runs.sweep.support import BASE

MARINA, LOGISTIC = {"name": "marina", "stepsize": {"theory": 2}}, {"name": "logistic"}
FILE = table(MARINA, {"name": "randk", "k": 3}, rounds=5, problem=LOGISTIC) | {"title": "a test"}


def test_back_to_toml_and_again(tmp_path):
    mark = "\ufeff"  # that some editors put first
    (tmp_path / "a.toml").write_text(mark + tomli_w.dumps(FILE), encoding="utf-8", newline="\r\n")
    words = ["run.wire=float64", "problem.l2=1e-3", "problem.workers=4"]
    experiment = read(tmp_path / "a.toml", words)
    text = experiment.to_toml()
    assert parse(tomllib.loads(text)).to_toml() == text
    resolved = tomllib.loads(text)
    assert resolved["run"]["wire"] == "float64" and resolved["problem"]["l2"] == 1e-3
    assert resolved["method"]["p"] == "theory" and resolved["method"]["stepsize"] == {"theory": 2}
    assert experiment.method.multiple() == 2.0
    assert pickle.loads(pickle.dumps(experiment)) == experiment == Experiment.from_dict(resolved)
    resolved["run"]["seed"] += 1
    assert Experiment.from_dict(resolved) != experiment


LINES = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8").splitlines()
CASES = [line.split(" -> ") for line in LINES if not line.startswith("#")]


@pytest.mark.parametrize(("given", "says"), CASES)
def test_what_is_not_allowed(given, says):
    tables = table(GD, rounds=1)
    for name, keys in json.loads(given).items():
        keys = tables.get(name, {}) | keys
        tables[name] = {key: value for key, value in keys.items() if value is not None}
    if tables["problem"]["name"] == "quadratic":
        del tables["problem"]["data"]
    with pytest.raises(InputError) as error:
        run_tables(tables)
    assert re.search(says, str(error.value)) and "\n" not in str(error.value)


@pytest.mark.parametrize(("layout", "each"), [("shared", 6), ("dedicated", 7)])
def test_how_many_ranks(layout, each):
    for given, ranks in ((None, None), (2, 2), ("workers", each)):
        run = {"layout": layout} | ({"ranks": given} if given else {})
        assert ranks_of(parse(table(GD, workers=6, **run))) == ranks
    experiment = table(GD, layout=layout, ranks="workers")
    del experiment["problem"]["workers"]
    assert ranks_of(parse(experiment)) is None  # a worker for each rank: as many as there are


def test_ranks_that_keep_a_problem_must_all_keep_it():
    """Rank 3 has workers 3 and 4 in both layouts, but the others do not have the same ones."""
    experiment, cache = parse(table(GD, workers=5)), ProblemCache()
    stars = [
        SimpleNamespace(n=5, rank=3, first=3, m=2, starts=communicators.starts(5, 4, layout))
        for layout in ("shared", "dedicated", "dedicated")
    ]
    problems = [cache.problem(experiment, star) for star in stars]
    assert problems[0] is not problems[1] and problems[1] is problems[2]


PLUGIN = """
from mpisim.compressors.base import Identity, compressor


@compressor("firstk")
class FirstK(Identity):
    k: int
"""
FIRSTK = BASE.replace("randk", "firstk").replace("marina", "ef21").replace('"theory"', "0.1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a plugin there and in sub/."""
    (tmp_path / "sub").mkdir()
    for place in (tmp_path, tmp_path / "sub"):
        (place / "first_k.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def forget_firstk():
    """As in another process."""
    del sys.modules["first_k"], COMPRESSORS["firstk"]


def test_other_processes_take_an_experiment(folder):
    """multiprocessing, concurrent.futures and mpi4py.futures pickle what they hand over."""
    tables = table(MARINA, {"name": "firstk", "k": 3}) | {"plugin": str(folder / "first_k.py")}
    pickled, text = pickle.dumps(parse(tables)), parse(tables).to_toml()
    forget_firstk()
    assert pickle.loads(pickled).to_toml() == text


@pytest.mark.parametrize("name", ["first_k", "./first_k.py", "sub/first_k.py"])
def test_by_flag(name, folder, command):
    (folder / "x.toml").write_text(FIRSTK)
    command("run", "x.toml", "--plugin", name, "--out", "log.h5")
    assert "firstk" in command("show", "log.h5")
    assert "plugin" not in tomllib.loads(attributes("log.h5")["config"])


def test_by_key_wherever_a_table_is_parsed(folder, command):
    (folder / "sub" / "x.toml").write_text("plugin = ['first_k.py']\n" + FIRSTK)
    grid = "[sweep]\nmethod.stepsize = [0.1, 0.2]\n"
    (folder / "sub" / "grid.toml").write_text("plugin = 'first_k.py'\n" + FIRSTK + grid)
    command("run", "sub/x.toml", "--out", "log.h5")
    assert tomllib.loads(attributes("log.h5")["config"])["plugin"] == ["sub/first_k.py"]
    verify = "verify log.h5 --rerun --"
    several = f"{verify}load-plugins; {verify}plugin ./sub/first_k.py; sweep sub/grid.toml"
    for words in f"{several}; tune sub/grid.toml; theory sub/x.toml".split("; "):
        forget_firstk()
        command(*words.split())


def test_verify_imports_nothing_unasked(folder, command):
    (folder / "x.toml").write_text("plugin = 'sub/first_k.py'\n" + FIRSTK)
    command("run", "x.toml", "--out", "log.h5")
    forget_firstk()
    with (folder / "sub" / "first_k.py").open("a") as file:
        file.write("\n__import__('pathlib').Path('executed').touch()\n")
    output = command("verify", "log.h5")
    assert "recomputed from the seed: no, its experiment needs sub/first_k.py: --plugin" in output
    assert "nothing is wrong" in output
    line = command("verify", "log.h5", "--rerun", code=2).strip()
    assert line.startswith("mpisim: log.h5: its experiment needs sub/first_k.py: --plugin names it")
    assert "\n" not in line and not (folder / "executed").exists()
    assert "ok  bits_up" in command("verify", "log.h5", "--load-plugins")
    assert (folder / "executed").exists()
    forget_firstk()
    assert mpisim.verify("log.h5", rerun=True, trusted=True)  # in Python, too


M5 = """import mpisim
@mpisim.compressor('m5')
class M5(mpisim.Compressor):
    def compress(self, v, draw): pass
"""
REFUSES = "from mpisim.core.errors import InputError\nraise InputError('not\\nthis')\n"
BROKEN = {
    "syntax.py": ("x = 1\ny = = 2\n", r"syntax\.py:2: invalid syntax"),
    "raises.py": ("\n\n1 / 0\n", r"raises\.py:3: ZeroDivisionError: division by zero"),
    "exits.py": ("import sys\nsys.exit(3)\n", r"exits\.py:2: SystemExit: 3"),
    "lacks.py": ("import no_such_module\n", r"lacks\.py:1: No module named 'no_such_module'"),
    "refuses.py": (REFUSES, r"refuses\.py:2: not this"),
    "nul.py": ("x = 1\0", "source code string cannot contain null bytes"),
    "latin.py": ("x = '\udcff'\n", r"latin\.py:1: .*can't decode byte 0xff .*"),
    "nested.py": ("(" * 5000, r"nested\.py:1: too many nested parentheses"),
    "m5.py": (M5, r"m5\.py:2: m5\.M5: define form\(self, draw\)"),
    "json.py": ("x = 1", "there is another module 'json'; rename the file"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_loaded_is_one_line(name, folder):
    text, message = BROKEN[name]
    (folder / name).write_bytes(text.encode(errors="surrogateescape"))
    for _ in range(2):  # nothing is left behind by the first
        with pytest.raises(InputError, match=f"^plugin {name}: cannot be loaded: .*{message}$"):
            plugins.load(name)


def test_a_file_takes_no_name_that_is_known(folder):
    plugins.load("first_k.py")
    file = folder / "other.py"
    for names, taken in (
        ("randk", "randk' is taken by mpisim"),
        ("mine mine", "mine' is taken by other"),
    ):
        file.write_text("".join(PLUGIN.replace("firstk", name) for name in names.split()))
        for _ in range(2):  # nothing is left behind by the first
            with pytest.raises(
                InputError, match=rf"other\.py:\d+: compressor '{taken}; rename it$"
            ):
                plugins.load("other.py")
    file.write_text(PLUGIN.replace("firstk", "mine"))
    plugins.load("other.py")
    plugins.load("sub/first_k.py")  # a file of the same name is loaded in its place


def test_a_plugin_has_its_names_whenever_it_is_named(folder, capsys):
    """It takes those of what came before; a line says what has changed meanwhile."""
    (folder / "other.py").write_text(f"import beside_it\n{PLUGIN}")
    (folder / "beside_it.py").write_text("")
    for stem in ("first_k", "other", "first_k", "other"):
        plugins.load(f"{stem}.py")
        assert COMPRESSORS["firstk"].__module__ == stem
    (folder / "sub" / "beside_it.py").write_text("")
    (folder / "sub" / "third.py").write_text("from beside_it import *\n")
    with pytest.raises(InputError, match=r"another module 'beside_it'; rename beside_it\.py"):
        plugins.load("sub/third.py")
    capsys.readouterr()
    for name in ("beside_it", "other"):
        before = imports.digest(folder / f"{name}.py")
        (folder / f"{name}.py").write_text("x = 1")
        plugins.load("other.py")
        line = f"mpisim: plugin {name} has changed since it was loaded: the old code runs"
        assert capsys.readouterr().err.startswith(line)
        assert imports.digest(folder / f"{name}.py") == before  # of what runs


def test_a_plugin_that_could_not_be_loaded_is_loaded_with_its_neighbours(folder):
    for value in ("1", "22"):
        (folder / "beside_it.py").write_text(f"value = {value}")
        (folder / "other.py").write_text(f"import beside_it\n{'1 / 0' * (value == '1')}")
        with suppress(InputError):
            plugins.load("other.py")
    assert sys.modules["beside_it"].value == 22
    plugins.load("first_k.py")
    (folder / "sub" / "first_k.py").write_text(PLUGIN + "1 / 0")
    with pytest.raises(InputError, match="division by zero"):
        plugins.load("sub/first_k.py")
    assert "first_k" not in sys.modules


def test_a_plugin_that_its_user_reloads_is_the_new_one(folder, capsys, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    plugins.load("first_k.py")
    before, text = COMPRESSORS["firstk"], f"{PLUGIN}\n# another one\n"
    (folder / "first_k.py").write_text(text)
    importlib.reload(sys.modules["first_k"])
    plugins.load(["first_k.py", "first_k.py"])
    assert COMPRESSORS["firstk"] is not before and capsys.readouterr().err == ""
    assert imports.digest(folder / "first_k.py") == imports.short(text.encode())


@pytest.mark.parametrize("value", [3, "", [""], ["a", 1], {"a": 1}, True])
def test_other_values_are_refused(value):
    with pytest.raises(InputError, match=r"^plugin: .* is not allowed; it must be the name of a"):
        parse({"plugin": value})


LETTERS = {"p": "π", "share": "σ"}


def test_a_plugin_is_labelled_wherever_its_logs_are(tmp_path):
    """Also by a process that has not loaded it."""
    more = {"__annotations__": {"other": int}, "other": 3}
    share = {"__annotations__": {"share": float}, "share": 0.5}
    for register, about, base, members in (
        (mpisim.method, {"label": "Mine!", "letters": LETTERS}, ESTIMATORS["marina"], share),
        (mpisim.compressor, {"label": "MineK", "letters": {"k": "κ"}}, COMPRESSORS["randk"], more),
        (mpisim.problem, {"label": "my squares"}, Quadratic, {}),
    ):
        register("mine", **about)(type("Mine", (base,), members))
    mpisim.compressor("plain")(type("Plain", (COMPRESSORS["randk"],), more))
    mine = {
        "problem": {"name": "mine", "dimension": 12, "workers": 3, "noise": 0.2},
        "method": {"name": "mine", "stepsize": 0.05, "p": 0.5, "share": 0.25},
        "compressor": {"name": "mine", "k": 2},
        "run": {"rounds": 2},
    }
    changes = {
        "σ = 0.25, MineK (κ = 2)": {},
        "σ = 0.75, MineK (κ = 2)": {"method": mine["method"] | {"share": 0.75}},
        "σ = 0.25, plain (K = 2, other = 3)": {"compressor": {"name": "plain", "k": 2}},
    }
    logs = [tmp_path / f"{number}.h5" for number in range(len(changes))]
    for log, change in zip(logs, changes.values(), strict=True):
        run_tables(mine | change, log)
    for names in (COMPRESSORS, ESTIMATORS, METHODS, PROBLEMS):
        for name in {"mine", "plain"} & names.loaded().keys():
            del names[name]
    groups = group_runs(map(reader.read, logs))
    assert [group.label for group in groups] == list(changes)
    assert common_title(groups[:1]) == "Mine!, MineK (κ = 2)\nmy squares, 3 workers"
    assert "Mine!" in show_text(logs[0]) and "MineK (κ = 2)" in show_text(logs[0])
