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
    with tempfile.TemporaryDirectory() as scratch:
        words = _command("other", Path(scratch), "-c", "import mpisim.cli, numba")
        job = subprocess.run(words, env=_environment(Path(os.devnull)), capture_output=True)
    return "" if job.returncode == 0 else f"cannot start as another user: {job.stderr.decode()}"


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong; it always happens."""
    with tempfile.TemporaryDirectory() as name:
        parent, cache = Path(name), Path(name) / "cache"
        parent.chmod(0o755)
        cache.mkdir()
        (parent / "scratch").mkdir()
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


def _command(user: str, scratch: Path, *words: str) -> list[str]:
    """Python with these words, for this user.

    The other one may enter the folders of Python and mpisim: where they are closed, as root's home
    is, copies of them are mounted that are not, for this process alone, in an empty folder.
    """
    words = sys.executable, *words
    if user == "root":
        return list(words)
    places = {sys.prefix, sys.base_prefix, str(ROOT)}
    folders = {folder for place in places for folder in (Path(place), *Path(place).parents)}
    script = [f"mount -t tmpfs none {scratch}"]
    for number, folder in enumerate(
        sorted(f for f in folders if f.stat().st_mode & 0o005 != 0o005)
    ):
        upper, work = scratch / str(number), scratch / f"{number}.work"
        layers = f"lowerdir={folder},upperdir={upper},workdir={work}"
        script += [f"mkdir {upper} {work}", f"mount -t overlay -o {layers} none {folder}"]
        script += [f"chmod a+rx {folder}"]
    script += [f'exec setpriv --reuid={OTHER} --regid={OTHER} --clear-groups "$@"']
    return ["unshare", "--mount", "sh", "-ec", "\n".join(script), "sh", *words]


def _start(user: str, parent: Path, cache: Path) -> subprocess.Popen:
    folder = parent / user
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    words = ["-m", "mpisim", "run", str(parent / "job.toml"), "--out", str(folder / "log.h5")]
    return subprocess.Popen(
        _command(user, parent / "scratch", *words),
        cwd=ROOT,
        env=_environment(cache) | {"TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
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
