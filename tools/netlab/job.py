"""mpirun across the hosts of a lab, as across a cluster."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from mpisim.comm.communicators import ASLEEP
from mpisim.core.errors import InputError, MpisimError
from tools.netlab.lab import Lab

GRACE_SECONDS = 10.0  # between SIGTERM and SIGKILL to mpirun

# Takes the place of ssh: AGENT ADDRESS COMMAND. Each host has its own name and temporary files.
AGENT = """\
#!/bin/sh
host=$((${{1##*.}} - 1)); shift
exec ip netns exec {name}-$host unshare --uts sh -c \
"echo netlab$host >/proc/sys/kernel/hostname; TMPDIR={folder}/host$host; export TMPDIR; $*"
"""

EAGER = str(1 << 20)  # bytes
OPEN_MPI = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",  # no shared memory between hosts, though they are one machine
    # a broadcast goes from the server to each host, not along a chain of hosts
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_bcast_algorithm": "1",
    "OMPI_MCA_coll_libnbc_ibcast_algorithm": "1",
    # send at once: larger messages would wait until the server asks for them, one host after the
    # other
    "OMPI_MCA_btl_tcp_eager_limit": EAGER,
    "OMPI_MCA_btl_tcp_rndv_eager_limit": EAGER,
    "OMPI_MCA_btl_tcp_max_send_size": EAGER,
    # the hosts share this machine's cores: ranks that wait leave them to those that work
    "OMPI_MCA_mpi_yield_when_idle": "1",
    ASLEEP: "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


class Stopped(MpisimError):
    """A signal asked for the end."""

    def __init__(self, number: int):
        super().__init__(f"netlab: stopped by {signal.Signals(number).name}; the network is gone")
        self.exit_code = 128 + number


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Within, the first SIGINT, SIGTERM or SIGHUP raises `Stopped`; later ones are ignored."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: int, _: object) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def mpirun(lab: Lab, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``mpirun COMMAND`` on host 0, with one rank on each host, and wait for its end.

    ``options`` are those of `subprocess.Popen`. An exception ends the job. Raises `InputError` if
    mpirun is not Open MPI's.
    """
    require_open_mpi()
    agent, hosts = lab.folder / "agent", lab.folder / "hosts"
    agent.write_text(AGENT.format(name=lab.name, folder=lab.folder))
    agent.chmod(0o755)
    hosts.write_text("".join(f"{lab.address(host)} slots=1\n" for host in range(lab.hosts)))
    launch = ["mpirun", "--hostfile", str(hosts), "--map-by", "ppr:1:node", "-n", str(lab.hosts)]
    agents = dict.fromkeys(("PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent"), str(agent))
    # a session of its own: Ctrl-C comes to this process alone, which then ends the job
    job = subprocess.Popen(
        [str(agent), lab.address(0), f"exec {shlex.join([*launch, *command])}"],
        env=os.environ | OPEN_MPI | agents | {"MPISIM_NETWORK": str(lab.network)},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
        **options,
    )
    try:
        out, err = job.communicate()
    except BaseException:
        _end(job)
        raise
    return subprocess.CompletedProcess(job.args, job.returncode, out, err)


def require_open_mpi() -> None:
    """Raise `InputError` unless mpirun is Open MPI's, whose launch agent can be replaced."""
    if shutil.which("mpirun") is None:
        raise InputError("netlab: there is no mpirun on PATH")
    answer = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False)
    if not any(name in answer.stdout.lower() for name in ("open mpi", "prrte")):
        raise InputError("netlab: needs the mpirun of Open MPI; the one on PATH is not")


def _end(job: subprocess.Popen[str]) -> None:
    """Send SIGTERM, which mpirun passes on, and SIGKILL if that is not enough."""
    job.terminate()
    try:
        job.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        job.kill()
        job.wait()
