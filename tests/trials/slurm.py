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
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tomli_w

from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read
from mpisim.testing.new import create_job
from tests.comm.jobs import HANG_SECONDS, ROOT, environment
from tests.helpers import run_tables
from tests.resumes import differences
from tests.trials.job import EXPERIMENTS

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
    os.environ.update(environment())
    with tempfile.TemporaryDirectory() as name, Cluster(Path(name) / "slurm", 2, 2) as slurm:
        return _requeue(slurm, Path(name) / "job", CASES[case]), True


def _requeue(cluster: Cluster, folder: Path, words: list[str]) -> str:
    """What is wrong; empty if nothing is."""
    folder.mkdir()
    tables = TABLES | {"run": TABLES["run"] | SLOW}
    experiment, log, message = (folder / name for name in ("experiment.toml", "log.h5", "out"))
    experiment.write_text(tomli_w.dumps(tables))
    command = ["sbatch", "--parsable", f"--chdir={ROOT}", f"--output={message}", *SHAPE, *words]
    script = str(create_job(folder / "job.sbatch"))
    run = ["run", str(experiment), "--out", str(log)]
    job = cluster.command(*command, script, *run).strip()

    if not words:
        if not _until(Path(f"{log}.ckpt").exists):
            return f"does not start: {_text(message)}"
        cluster.command("scontrol", "requeue", job)
    if not _until(lambda: int(_field(cluster, job, "Restarts")) > 0):
        return f"is not queued again: {_text(message)}"
    if not _until(lambda: int(_attribute(log, "resumed") or 0) > 0):
        return f"does not go on: {_text(message)}"
    cluster.command("scancel", job)
    if not _until(lambda: _attribute(log, "status") == "terminated"):
        return f"does not end at SIGTERM: {_text(message)}"
    return _compare(folder, log)


def _compare(folder: Path, log: Path) -> str:
    """Whether the log is the beginning of that of a run in this process."""
    rounds = int(read(log).columns["round"][-1])
    tables = TABLES | {"run": TABLES["run"] | SLOW | {"rounds": rounds}}
    alone = folder / "alone.h5"
    run_tables(tables, alone)
    different = [name for name in differences(alone, log) if name != "stopped_by"]
    return f"{', '.join(different)} differ" if different else ""


def _field(cluster: Cluster, job: str, name: str) -> str:
    words = cluster.command("scontrol", "show", "job", "-o", job).split()
    return next(word.partition("=")[2] for word in words if word.startswith(f"{name}="))


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


class Cluster:
    """A cluster of ``nodes`` nodes with ``cores`` tasks each, in a ``with`` statement.

    environment : with which its commands are called
    """

    def __init__(self, folder: Path, nodes: int, cores: int):
        self.folder, self.names = folder, [f"node{i + 1}" for i in range(nodes)]
        self.cores = cores
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}

    def __enter__(self) -> Cluster:
        with contextlib.ExitStack() as stack:
            stack.callback(self._stop)
            self._configure()
            self._start()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def command(self, *words: str) -> str:
        """What a command of the cluster prints; `RuntimeError` with what it says if it fails."""
        variables = os.environ | self.environment
        done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def _configure(self) -> None:
        host, first = socket.gethostname(), 20000 + secrets.randbelow(10000)
        text = CONFIGURATION.format(host=host, port=first, folder=self.folder)
        for number, name in enumerate(self.names, first + 1):
            text += f"NodeName={name} NodeHostname={host} Port={number} CPUs={self.cores}\n"
            for kind in ("spool", "pmix"):
                (self.folder / f"{kind}-{name}").mkdir(parents=True)
        (self.folder / "slurm.conf").write_text(text)
        for name in ("state", "pmix", "munge"):
            (self.folder / name).mkdir()
        # Each node sees its own folder there: they would make the same names.
        (self.folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={self.folder}/pmix\n")
        key = self.folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        key.parent.chmod(0o711)

    def _start(self) -> None:
        munge = self.folder / "munge"
        places = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
        words = [f"--{word}={munge / name}" for word, name in places.items()]
        self.command("munged", "--force", *words, f"--seed-file={munge / 'seed'}")
        conf = self.environment["SLURM_CONF"]
        self.command("slurmctld", "-f", conf)
        for name in self.names:
            mount = f"mount --bind {self.folder}/pmix-{name} {self.folder}/pmix"
            slurmd = f"exec slurmd -f {conf} -N {name}"
            self.command("unshare", "--mount", "sh", "-c", f"{mount} && {slurmd}")
        end = time.monotonic() + HANG_SECONDS
        while self.command("sinfo", "-h", "-t", "idle", "-o", "%D").strip() != str(len(self.names)):
            if time.monotonic() > end:
                raise RuntimeError(f"the nodes are not ready; see {self.folder}")
            time.sleep(0.2)

    def _stop(self) -> None:
        daemons = [*self.folder.glob("slurm*.pid"), *self.folder.glob("munge/pid")]
        for file in daemons:
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)
        end = time.monotonic() + HANG_SECONDS
        while time.monotonic() < end and any(file.exists() for file in daemons):
            time.sleep(0.1)
