"""Two users, root and another one, run at the same time with one folder for all caches.

Whoever owns it and whatever its mode is, both must end with the right log and at most a line: what
the other one could have written is not read.
"""

import dataclasses
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tomli_w

from tests.comm.jobs import HANG_SECONDS, ROOT, environment
from tests.resumes import differences
from tests.trials.job import EXPERIMENTS, reference

OTHER = 54321  # a user without a name or a home


@dataclasses.dataclass(frozen=True)
class Trial:
    """owner : of the folder; first : who runs once before both do, "" for nobody; damaged: then"""

    experiment: str
    owner: str
    mode: int
    first: str
    damaged: bool


def choose(seed: int, number: int) -> Trial:
    """The trial of that number: the same for the same seed."""
    rng = random.Random(f"users {seed}/{number}")
    experiment, owner = rng.choice(list(EXPERIMENTS)), rng.choice(["root", "other"])
    mode = rng.choice([0o700, 0o755, 0o777, 0o1777])
    first = rng.choice(["", "root", "other"])
    return Trial(experiment, owner, mode, first, bool(first) and rng.random() < 0.5)


def possible() -> str:
    """Why this cannot be tried here; empty if it can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "needs root on Linux"
    words, env = [sys.executable, "-c", "import mpisim.cli, numba"], _environment(Path(os.devnull))
    why = "needs an interpreter and libraries that another user can read"
    try:
        who = {"user": OTHER, "group": OTHER, "extra_groups": []}
        job = subprocess.run(words, env=env, capture_output=True, **who)
    except OSError:
        return why
    return "" if job.returncode == 0 else why


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong; it always happens."""
    with tempfile.TemporaryDirectory() as name:
        parent, cache = Path(name), Path(name) / "cache"
        parent.chmod(0o755)
        cache.mkdir()
        for user in ("root", "other"):
            (parent / user).mkdir()
            _give(parent / user, user)
        _give(cache, trial.owner)
        cache.chmod(trial.mode)
        (parent / "job.toml").write_text(tomli_w.dumps(EXPERIMENTS[trial.experiment]))
        problems = []
        if trial.first:
            problems += _end(trial, trial.first, parent, _start(trial.first, parent, cache))
        if trial.damaged:
            for path in filter(Path.is_file, cache.rglob("*")):
                path.write_bytes(path.read_bytes()[:-7] + b"garbage")
        jobs = {user: _start(user, parent, cache) for user in ("root", "other")}
        for user, job in jobs.items():
            problems += _end(trial, user, parent, job)
        return "; ".join(problems), True


def _environment(cache: Path) -> dict[str, str]:
    folders = {"MPISIM_CACHE": str(cache), "NUMBA_CACHE_DIR": str(cache / "numba")}
    return environment() | folders | {"HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}


def _give(folder: Path, user: str) -> None:
    number = OTHER if user == "other" else 0
    os.chown(folder, number, number)


def _start(user: str, parent: Path, cache: Path) -> subprocess.Popen:
    folder, number = parent / user, OTHER if user == "other" else 0
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    words = ["-m", "mpisim", "run", str(parent / "job.toml"), "--out", str(folder / "log.h5")]
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env=_environment(cache) | {"TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        user=number,
        group=number,
        extra_groups=[],
    )


def _end(trial: Trial, user: str, parent: Path, job: subprocess.Popen) -> list[str]:
    _, output = job.communicate(timeout=HANG_SECONDS)
    if job.returncode != 0:
        return [f"{user}: exit code {job.returncode}: {output[-1000:]}"]
    notes = [line for line in output.splitlines() if line.startswith("mpisim: ")]
    problems = [f"{user}: {len(notes)} lines: {notes}"] if len(set(notes)) > 2 else []
    if "Traceback" in output or "Error" in output:
        problems.append(f"{user}: {output[-1000:]}")
    wrong = differences(reference(trial.experiment), parent / user / "log.h5")
    return problems + [f"{user}: {one} differs" for one in wrong]
