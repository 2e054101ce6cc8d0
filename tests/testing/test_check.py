"""`mpisim check` passes what mpisim has, and what `mpisim new` makes, and sees each mistake."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from mpisim.cli import main
from mpisim.cli.names import SETTINGS
from mpisim.comm.communicators import OneProcess
from mpisim.core.errors import InputError
from mpisim.core.schema import build
from mpisim.methods.method_table import make_method, needs_compressor
from mpisim.problems import PROBLEMS
from mpisim.problems.data.sample import write_sample
from mpisim.testing import assert_all, check, problem_checks
from mpisim.testing.method import finds_gradient
from mpisim.testing.new import create
from mpisim.testing.plugins import Subject, experiments, load
from mpisim.testing.runs import Broken, Trial, run_job
from tests.comm.jobs import ended
from tests.helpers import sampled, some_of
from tests.problems.support import SMALL
from tests.resumes import KEYS

CASES = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text())
HEAD, COMPRESSOR, METHOD, PROBLEM, METRIC = CASES["plugins"].values()


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """plugin(text): the path of a file with it; what it registers is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)

    def make(text: str, name: str):
        path = tmp_path / f"plugin_{re.sub(r'[^a-z]', '_', name)}.py"
        path.write_text(HEAD + text)
        return path

    return make


@pytest.fixture
def one_process(monkeypatch):
    """No mpirun."""
    monkeypatch.setenv("PATH", "")


class Seen(Exception):
    """The mistake is found: the checks that are left need not run."""


@some_of(10, name=CASES["mistakes"])
def test_a_mistake_is_seen(name, plugin, one_process):
    case = CASES["mistakes"][name]
    text = CASES["plugins"][case["of"]]
    assert case["right"] in text
    wrong_text = text.replace(case["right"], case["wrong"])
    if name == "f that is not convex":
        wrong_text = wrong_text.replace("return x - self", "return -x + self")
        wrong_text = wrong_text.replace("    size:", "    convex = True\n    size:")

    def look(one) -> None:
        if one.failed and re.search(case["check"], one.what):
            raise Seen(one.why)

    with pytest.raises(Seen, match=rf"^.*({case['why']}).*$"):  # in one line
        check(plugin(wrong_text, name), say=look)


def test_what_is_right_passes(plugin, one_process, capsys):
    text = COMPRESSOR + METHOD.replace("Mine", "Ours") + PROBLEM.replace("Mine", "Squares")
    text += METRIC.replace("Mine", "Measured")
    assert main(["check", str(plugin(text, "right"))]) == 0
    output, errors = capsys.readouterr()
    assert errors == "" and " 0 failed, " in output
    assert output.count("there is no mpirun on PATH") == 8


def test_a_run_that_is_refused_is_no_run_that_passed(plugin, one_process):
    refuse = 'if self.compressor.omega is None: raise mpisim.InputError("it is biased")'
    text = METHOD.replace("self.h = 0 * x\n", f"self.h = 0 * x\n        {refuse}\n", 1)

    def look(one) -> None:
        if one.what.startswith("runs ("):
            raise Seen(one.what)

    with pytest.raises(Seen, match=r"^runs \(with identity, with randk, with natural\)$"):
        check(plugin(text, "refusing"), say=look)


@pytest.fixture
def run_twice(plugin, tmp_path):
    """A trial of the method with ``right`` replaced by ``wrong``, run by itself and on ranks."""

    def run(right: str, wrong: str, name: str, **how) -> Trial:
        path = plugin(METHOD.replace(right, wrong), name)
        load([str(path)])
        tables = next(experiments(Subject("method", "mine", {}), tmp_path / "sample"))[1]
        write_sample(tmp_path / "sample", rows=240)
        trial = Trial("", tables, tmp_path / "log", **how)
        trial.run()
        vars(import_module(path.stem))["KEPT"].clear()  # as in new processes
        trial.run_on(OneProcess())
        return trial

    return run


def test_state_of_a_module_is_seen_in_new_processes(run_twice):
    """It is there again where the same process has run the round before: by the round, say."""
    wrong = """
KEPT.append((self.star.round, g))
        return g + dict(KEPT).get(self.star.round - 1, 0 * g) * 1e-3""".strip()
    with pytest.raises(Broken, match="rounds/loss"):
        run_twice("return g", wrong, "modules").compare("moved", "")


def test_what_costs_no_bits_is_seen_on_ranks_where_what_was_sent_may_be_kept(run_twice):
    right = CASES["mistakes"]["a sum that costs no bits"]["right"]
    wrong = "(self.h, self.star.publish(self.h), self.star.average(m_i))[-1]"
    with pytest.raises(Broken, match=r"it calls star\.publish"):
        run_twice(right, wrong, "ranks", keeps_sent=True).compare("ranks", "")


@pytest.mark.parametrize("name", sorted({*PROBLEMS} - {"torch"}))
def test_our_problems_pass(name):
    assert_all(problem_checks(build(PROBLEMS[name], SMALL[name], "problem")))


FIND_IT = ("dcgd", "vr-diana", "dasha-sync-mvr", "ef21-2way", "ef", "ef21-p", "marina-p")


@some_of(3, name=FIND_IT)
def test_our_methods_find_the_gradient_where_the_point_stands_still(name, tmp_path):
    write_sample(tmp_path / "sample", rows=240)
    method = {"name": name, "stepsize": 0.1} | KEYS.get(name, {})
    problem = {"name": "logistic", "data": str(tmp_path / "sample"), "workers": 6}
    finds_gradient({"problem": problem, "method": method})


def test_error_feedback_in_the_other_order_passes(plugin, one_process, capsys):
    """v_i is used after it was sent, as the paper's lines allow: that alone is no mistake."""
    text = METHOD.replace("(x) - self.h_i", "(x) + self.h_i").replace("self.h + ", "")
    text = text.replace("m_i.add_to(self.h_i)", "v_i - m_i.decoded()")
    assert main(["check", str(plugin(text, "order"))]) == 0, capsys.readouterr().out


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a plugin of each kind, and their tests."""
    folder = tmp_path_factory.mktemp("made")
    for kind in SETTINGS:
        assert main(["new", kind, f"my-{kind}", "--folder", str(folder)]) == 0
    return folder


def test_what_is_made_has_no_placeholders(made):
    texts = {path.name: path.read_text() for path in made.glob("*.py")}
    assert texts.keys() == {f"{test}my_{kind}.py" for kind in SETTINGS for test in ("", "test_")}
    assert not re.search("NAME|FILE|CLASS|LABEL", "".join(texts.values()))


CHECKED = {
    "my_compressor.py": "compressor my-compressor (k = 3)",
    "my_estimator.py": "method my-estimator",
    "my_method.py": "method my-method (local_steps = 2)",
    "my_problem.py": "problem my-problem",
    "small_fedavg.py": "method small-fedavg",
}


@pytest.mark.mpi
def test_what_is_made_passes_mpisim_check_on_several_ranks(made):
    """One of the files, drawn by the seed, and one that has nothing to check on ranks."""
    files = [*sampled(CHECKED, 1), "my_metric.py"]
    assert {f"my_{kind}.py" for kind in SETTINGS} <= {*CHECKED, "my_metric.py"}
    places = {"small_fedavg.py": Path(__file__).parent}
    paths = (str(places.get(file, made) / file) for file in files)
    job = ended(sys.executable, "-m", "mpisim", "check", *paths, cwd=made)
    lines = job.stdout.splitlines()
    for subject in (CHECKED[file] for file in files[:-1]):
        for what in ("run in two parts", "same log on 3 ranks", "begun on 1 rank and ended on 3"):
            assert any(line.startswith(f"ok      {subject}: ") and what in line for line in lines)


def test_an_interrupt_ends_the_job_that_check_started(tmp_path, monkeypatch):
    """Its mpirun is in a session of its own, where Ctrl-C does not reach it."""
    sleeper = tmp_path / "mpirun"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    started, communicate = [], subprocess.Popen.communicate

    def interrupted(job, *words, **named):
        started.append(job)
        if len(started) == 1:
            raise KeyboardInterrupt
        return communicate(job, *words, **named)

    monkeypatch.setattr("subprocess.Popen.communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_job(tmp_path, [], [])
    assert started[0].returncode == -signal.SIGKILL


def test_what_is_made_passes_its_tests_and_ruff(made):
    [kind] = sampled(SETTINGS, 1)
    tests = f"-m pytest -q -p no:cacheprovider test_my_{kind}.py"
    lint = "-m ruff check --isolated --select E,F,I,B,UP --line-length 100 ."
    for words in (tests, lint):
        # no mpirun, which the test above starts
        ended(sys.executable, *words.split(), cwd=made, PATH="")


def test_a_copy_starts_as_the_method_that_it_is_like(tmp_path, monkeypatch):
    """Its class is the method's, under another name, with what it needs imported."""
    monkeypatch.syspath_prepend(tmp_path)
    for like in ("scaffold", "cd-adam"):
        name, keys = f"my-{like}", {"stepsize": 0.1} | KEYS.get(like, {})
        import_module(create("method", name, tmp_path, like)[0].stem)
        copy, original = (make_method({"name": one} | keys) for one in (name, like))
        same = {"name": like, "estimator": original.estimator.name}
        assert copy.table() | same == original.table()
        assert needs_compressor(name) == needs_compressor(like) == (like == "cd-adam")
    with pytest.raises(InputError, match=r"^--like: unknown name 'fedavgg'; did"):
        create("method", "mine", tmp_path, "fedavgg")


STAND_IN = '#!/bin/bash\necho "${{0##*/}}" "$PWD" "$@" >> "$MESSAGE"\nexit {code}\n'
SRUN = f"srun FOLDER --kill-on-bad-exit=0 --wait=60 {sys.executable} -m mpisim"
ARRAY = {"ID": "6", "MIN": "4", "MAX": "11", "COUNT": "8"}
ARRAY = {f"SLURM_ARRAY_TASK_{name}": value for name, value in ARRAY.items()}


@pytest.fixture
def submit(tmp_path):
    """submit(*words, code=0, **variables): exit code, what Slurm's commands got, standard error.

    code : of srun
    """
    script, folder = tmp_path / "a" / "night.sbatch", tmp_path / "elsewhere"
    message = tmp_path / "message"
    assert main(["new", "job", str(script)]) == 0
    folder.mkdir()

    def run(*words, code=0, **variables):
        for name, status in (("srun", code), ("scontrol", 0)):
            Path(folder, name).write_text(STAND_IN.format(code=status))
            Path(folder, name).chmod(0o755)
        slurm = {"SLURM_SUBMIT_DIR": str(folder), "SLURM_JOB_ID": "7", "MESSAGE": str(message)}
        path = {"PATH": f"{folder}:{os.environ['PATH']}", "USER": "someone"}
        variables = path | slurm | variables
        job = ended("bash", str(script), *words, code=None, cwd="/", **variables)
        lines = message.read_text().splitlines() if message.exists() else []
        return job.returncode, [line.replace(str(folder), "FOLDER") for line in lines], job.stderr

    return run


def test_a_run_goes_on_from_its_checkpoint_and_is_queued_again_where_slurm_stops_it(submit):
    words = ("run", "e.toml", "--out", "log.h5")
    line = f"{SRUN} run e.toml --out log.h5 --resume"
    assert submit(*words)[:2] == (0, [line])
    assert submit(*words, code=143)[:2] == (143, [line, line, "scontrol FOLDER requeue 7"])


def test_a_task_of_an_array_runs_its_share_of_a_sweep(submit):
    assert submit("sweep", "g.toml", **ARRAY)[1] == [f"{SRUN} sweep g.toml --shard 3/8"]
    assert submit("sweep", "g.toml")[1][1:] == [f"{SRUN} sweep g.toml"]
    some = ARRAY | {"SLURM_ARRAY_TASK_COUNT": "2"}  # --array=4,11, say
    assert submit("sweep", "g.toml", **some)[1][2:] == [f"{SRUN} sweep g.toml"]


def test_without_a_command_there_is_a_line(submit):
    code, message, error = submit()
    assert (code, message) == (2, [])
    assert error.startswith("night.sbatch: needs a command of mpisim: sbatch night.sbatch run")
