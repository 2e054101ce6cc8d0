"""Shared fixtures; the seed of what is sampled, and how often mpirun was started."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from mpisim.cli import main
from mpisim.compressors.base import COMPRESSORS
from mpisim.core.numerics import kernel_cache
from mpisim.core.registry import Registry
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems import PROBLEMS
from mpisim.problems.data.find import available
from mpisim.runs.metrics import METRICS

pytest_plugins = ["tests.handmade_logs"]

CLASSES: list[Registry] = [COMPRESSORS, ESTIMATORS, METRICS, OPTIMIZERS, PROBLEMS]

MOST_STARTS = 40  # of mpirun in the whole suite: each takes seconds of processor time
MINUTES = 10  # of processor time for the whole suite; a guide, not a limit
STARTS = "MPISIM_TEST_STARTS"  # names the file with a line for each start
SEED = "MPISIM_TEST_SEED"  # draws what is sampled
COUNTING = """\
#!/bin/sh
echo "$*" >> {starts}
exec {mpirun} "$@"
"""


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, help="draws layouts, processors, ... (default: another)")
    parser.addoption("--every", action="store_true", help="all cases of tests that draw some")


def pytest_configure(config):
    """Hear Ctrl-C, draw the seed, and put a mpirun that counts its starts before the real one."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # inherited from `nohup` or a job with &
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):  # of pytest-xdist: it inherits both in its environment
        return
    seed = config.option.seed
    os.environ[SEED] = str(random.SystemRandom().randrange(10**6) if seed is None else seed)
    mpirun = shutil.which("mpirun")
    folder = Path(tempfile.mkdtemp(prefix="mpisim-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ[STARTS] = str(folder / "starts")
    if mpirun:
        counting = folder / "mpirun"
        counting.write_text(
            COUNTING.format(starts=shlex.quote(os.environ[STARTS]), mpirun=shlex.quote(mpirun))
        )
        counting.chmod(0o755)
        os.environ["PATH"] = os.pathsep.join([str(folder), os.environ["PATH"]])


def pytest_sessionfinish(session):
    """Too many starts are a failure."""
    if not hasattr(session.config, "workerinput") and len(_starts()) > MOST_STARTS:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    starts = _starts()
    minutes = sum(os.times()[:4]) / 60  # those of pytest-xdist have ended
    terminalreporter.write_line(
        f"seed {os.environ[SEED]} (--seed repeats it); mpirun was started {len(starts)} times, "
        f"at most {MOST_STARTS} are allowed; {minutes:.1f} minutes of processor time, "
        f"{MINUTES} are planned"
    )
    if len(starts) > MOST_STARTS:
        terminalreporter.write_line("\n".join(starts))


def _starts() -> list[str]:
    """A line for each mpirun that was started so far."""
    file = Path(os.environ[STARTS])
    return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def seed() -> int:
    """Of this session; printed, so that a failure shows it."""
    print(f"--seed {os.environ[SEED]} repeats this choice")
    return int(os.environ[SEED])


@pytest.fixture(scope="session", autouse=True)
def _private_cache_and_no_waiting_for_disks(tmp_path_factory):
    """Tests never touch the user's cache.

    Thousands of small runs would wait minutes for disks; jobs in processes of their own do sync.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPISIM_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


def _forget_plugins(tmp_path_factory):
    """What a test, or its module's fixtures, registered, and modules in its folders, are gone then.

    Another test of the process may then use the names.
    """
    before, modules = [set(r.loaded()) for r in CLASSES], set(sys.modules)
    methods = set(METHODS.loaded())
    yield
    gone: set[str] = set()
    for registry, names in zip(CLASSES, before, strict=True):
        for name in set(registry.loaded()) - names:
            if registry.loaded()[name].__module__.partition(".")[0] != "mpisim":
                del registry[name]
                gone.add(name)
    for name in set(METHODS.loaded()) - methods:
        if gone & {METHODS.loaded()[name].estimator, METHODS.loaded()[name].optimizer}:
            del METHODS[name]
    folder = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


_after_each_module = pytest.fixture(_forget_plugins, scope="module", autouse=True)
_after_each_test = pytest.fixture(_forget_plugins, autouse=True)


@pytest.fixture
def command(capfd):
    """command(*words, code=0): what `mpisim` prints; where it ends with 2, what stderr says."""

    def run(*words, code=0) -> str:
        capfd.readouterr()
        assert main([str(word) for word in words]) == code
        out, err = capfd.readouterr()
        return err if code == 2 else out

    return run


@pytest.fixture
def need_data():
    """need_data(name) skips the test where the data set is not here."""

    def need(name: str) -> None:
        if not available(name):
            pytest.skip(f"{name} is not here (MPISIM_DATA)")

    return need


def pytest_collection_modifyitems(config, items):
    """Tests that start real jobs are `mpi`, tests on data that may not be here are `real`.

    Of a test that is `drawn`, the seed draws so many cases.
    """
    kernel_cache.defer_blas_check()
    tests: dict = {}
    for item in items:
        if drawn := item.get_closest_marker("drawn"):
            _, cases = tests.setdefault((item.path, item.originalname), (*drawn.args, []))
            cases.append(item)
    left_out = set()
    for (_, name), (most, cases) in tests.items():
        if len(cases) > most and not config.option.every:
            drawn = random.Random(f"{name} {os.environ[SEED]}").sample(cases, most)
            left_out |= set(cases) - set(drawn)
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))
    for item in items:
        jobs = {"comm", "tools", "trials"} & set(item.path.parts)
        if jobs and item.path.name.startswith("test_"):
            item.add_marker(pytest.mark.mpi)
        if "need_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real)
