"""The same logs on any ranks, in both layouts, and under the settings of other processors."""

import functools
import random
import tempfile
from pathlib import Path

import tomli_w

from tests.comm.jobs import mpirun
from tests.helpers import run_tables
from tests.processors.experiments import write_dense
from tests.processors.settings import HOST, OTHERS, Setting
from tests.resumes import differences, experiments

EXPERIMENTS = dict(experiments())


def choose_sample(seed: int, number: int) -> str:
    """What tests/comm/layouts.py is told: the first has all experiments in all layouts."""
    return str(1000 * seed + number) if number else "--all"


def layouts(sample: str) -> tuple[str, bool]:
    """What differs on 1, 2, 3 and 6 ranks; it always happens."""
    job = mpirun(6, "-m", "tests.comm.layouts", sample, code=None, timeout=None)
    return "" if job.returncode == 0 else job.stdout[-3000:] + job.stderr[-3000:], True


def choose_ranks(seed: int, number: int) -> tuple[int, dict]:
    """An experiment with as many workers as fit on 7 or 64 ranks, and some more."""
    rng, ranks = random.Random(f"ranks {seed}/{number}"), 64 if number % 3 == 2 else 7
    name, layout = rng.choice(list(EXPERIMENTS)), rng.choice(["shared", "dedicated"])
    workers = ranks - (layout == "dedicated") + rng.choice([0, 0, 1, 5])
    if name.startswith("compressed-scaffnew"):  # groups that divide the workers
        workers = 3 * -(-workers // 3)
    tables = EXPERIMENTS[name]
    problem = tables["problem"] | {"workers": workers}
    run = tables["run"] | {"layout": layout, "debug": True}
    return ranks, tables | {"problem": problem, "run": run}


def many_ranks(trial: tuple[int, dict]) -> tuple[str, bool]:
    """What is wrong with the log, against that of one process; it always happens."""
    ranks, tables = trial
    with tempfile.TemporaryDirectory() as name:
        file, log, other = (Path(name) / one for one in ("job.toml", "log.h5", "other.h5"))
        file.write_text(tomli_w.dumps(tables))
        words = "-m", "mpisim", "run", str(file), "--out", str(log)
        job = mpirun(ranks, *words, code=None, timeout=None)
        if job.returncode != 0:
            return f"exit code {job.returncode}: {job.stderr[-2000:]}", True
        run_tables(tables, other)
        return "; ".join(f"{one} differs" for one in differences(other, log)), True


def choose_setting(seed: int, number: int) -> Setting:
    """One after the other."""
    return OTHERS[number % len(OTHERS)]


def processors(setting: Setting) -> tuple[str, bool]:
    """The results that differ from this processor's; whether it has what the setting needs."""
    if setting.lacks():
        return "", False
    host, other = _digests(HOST), _digests(setting)
    return "; ".join(result for result in host if other[result] != host[result]), True


@functools.cache
def _digests(setting: Setting) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        write_dense(Path(name) / "dense.txt")
        return setting.digests(Path(name) / "dense.txt", "all", Path(name))
