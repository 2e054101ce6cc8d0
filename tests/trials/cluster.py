"""Slurm on one machine, with several virtual nodes. Needs root on Linux, and Debian's packages.

munged, slurmctld and a slurmd for each node run from a folder of their own, which holds their
configuration, state and logs; what the machine's own Slurm has is not touched.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.comm.jobs import HANG_SECONDS

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "squeue", "unshare")
PACKAGES = "slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libpmix-dev"
READY_SECONDS = HANG_SECONDS
# Nodes are processes: no cgroups. A job that is queued again starts at once, not in two minutes.
CONFIGURATION = Path(__file__).with_name("slurm.conf").read_text(encoding="utf-8")


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
        end = time.monotonic() + READY_SECONDS
        while self.command("sinfo", "-h", "-t", "idle", "-o", "%D").strip() != str(len(self.names)):
            if time.monotonic() > end:
                raise RuntimeError(f"the nodes are not ready; see {self.folder}")
            time.sleep(0.2)

    def _stop(self) -> None:
        daemons = [*self.folder.glob("slurm*.pid"), *self.folder.glob("munge/pid")]
        for file in daemons:
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end and any(file.exists() for file in daemons):
            time.sleep(0.1)
