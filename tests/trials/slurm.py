"""A run under Slurm that is queued again, and goes on.

The script of `mpisim new job` on 2 virtual nodes with 2 ranks each. The job is queued again once by
hand (`scontrol requeue`), and once by itself, when it gets SIGTERM before its time is over. Each
time it must go on from its checkpoint, to the log of an undisturbed run.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import tomli_w

from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read
from mpisim.testing.new import create_job
from tests.comm.jobs import HANG_SECONDS, ROOT, ended
from tests.helpers import run_tables
from tests.resumes import differences
from tests.trials.job import EXPERIMENTS

NODES = ("node1", "node2")
TABLES = EXPERIMENTS["marina randk"]
SHAPE = ("--nodes=2", "--ntasks-per-node=2")
SLOW = {"rounds": 2_000_000, "log_every": 500, "checkpoint_seconds": 0.2}
# How a job is made to start again, and the words of sbatch that make it do so by itself: SIGTERM
# 30 seconds after the start.
CASES = {
    "scontrol requeue": [],
    "SIGTERM before the time is over": ["--time=1", "--signal=TERM@30"],
}

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "squeue", "unshare")
PACKAGES = "slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libpmix-dev"
# Nodes are processes: no cgroups. A job that is queued again starts at once, not in two minutes.
CONFIGURATION = Path(__file__).with_name("slurm.conf").read_text(encoding="utf-8")


def choose(seed: int, number: int) -> str:
    """One after the other."""
    return list(CASES)[number % len(CASES)]


def attempt(case: str) -> tuple[str, bool]:
    """What is wrong with a job that starts twice; it always does."""
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "slurm") as call:
        return _requeue(call, Path(name) / "job", CASES[case]), True


def _requeue(call: Callable[..., str], folder: Path, words: list[str]) -> str:
    """What is wrong; empty if nothing is."""
    folder.mkdir()
    tables = TABLES | {"run": TABLES["run"] | SLOW}
    experiment, log, message = (folder / name for name in ("experiment.toml", "log.h5", "out"))
    experiment.write_text(tomli_w.dumps(tables))
    command = ["sbatch", "--parsable", f"--chdir={ROOT}", f"--output={message}", *SHAPE, *words]
    script = str(create_job(folder / "job.sbatch"))
    run = ["run", str(experiment), "--out", str(log)]
    job = call(*command, script, *run).strip()

    if not words:
        if not _until(Path(f"{log}.ckpt").exists):
            return f"does not start: {_text(message)}"
        call("scontrol", "requeue", job)
    if not _until(lambda: "Restarts=0" not in call("scontrol", "show", "job", "-o", job).split()):
        return f"is not queued again: {_text(message)}"
    if not _until(lambda: int(_attribute(log, "resumed") or 0) > 0):
        return f"does not go on: {_text(message)}"
    call("scancel", job)
    if not _until(lambda: _attribute(log, "status") == "terminated"):
        return f"does not end at SIGTERM: {_text(message)}"
    rounds = int(read(log).columns["round"][-1])
    run_tables(tables | {"run": tables["run"] | {"rounds": rounds}}, folder / "alone.h5")
    different = [name for name in differences(folder / "alone.h5", log) if name != "stopped_by"]
    return f"{', '.join(different)} differ" if different else ""


def _attribute(log: Path, name: str) -> str:
    """Of a log that may be written at this moment."""
    try:
        return str(read(log).attrs.get(name, ""))
    except InputError:
        return ""


def _text(message: Path) -> str:
    return message.read_text()[-2000:] if message.exists() else "nothing was printed"


def _until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + HANG_SECONDS
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.2)
    return False


def possible() -> str:
    """Why there can be no cluster here; empty if there can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)} (Debian: apt-get install {PACKAGES})"
    return "" if os.geteuid() == 0 else "needs root"


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Callable[..., str]]:
    """Nodes with two cores each, and what calls a command of theirs and returns what it prints."""

    def call(*words: str) -> str:
        return ended(*words, SLURM_CONF=str(folder / "slurm.conf")).stdout

    _configure(folder)
    try:
        _start(folder, call)
        yield call
    finally:
        daemons = [*folder.glob("slurm*.pid"), *folder.glob("munge/pid")]
        for file in daemons:
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)
        _until(lambda: not any(file.exists() for file in daemons))


def _configure(folder: Path) -> None:
    host, first = socket.gethostname(), 20000 + secrets.randbelow(10000)
    text = CONFIGURATION.format(host=host, port=first, folder=folder)
    for number, name in enumerate(NODES, first + 1):
        text += f"NodeName={name} NodeHostname={host} Port={number} CPUs=2\n"
        for kind in ("spool", "pmix"):
            (folder / f"{kind}-{name}").mkdir(parents=True)
    (folder / "slurm.conf").write_text(text)
    for name in ("state", "pmix", "munge"):
        (folder / name).mkdir()
    # Each node sees its own folder there: they would make the same names.
    (folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={folder}/pmix\n")
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o600)
    key.parent.chmod(0o711)


def _start(folder: Path, call: Callable[..., str]) -> None:
    munge, conf = folder / "munge", f"{folder}/slurm.conf"
    places = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
    words = [f"--{word}={munge / name}" for word, name in places.items()]
    call("munged", "--force", *words, f"--seed-file={munge / 'seed'}")
    call("slurmctld", "-f", conf)
    for name in NODES:
        mount = f"mount --bind {folder}/pmix-{name} {folder}/pmix"
        slurmd = f"exec slurmd -f {conf} -N {name}"
        call("unshare", "--mount", "sh", "-c", f"{mount} && {slurmd}")
    if not _until(lambda: call("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2"):
        raise RuntimeError(f"the nodes are not ready; see {folder}")
