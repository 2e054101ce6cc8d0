"""python -m tests.trials.entry FAULT ARGUMENT ...: `mpisim ARGUMENT ...` with one fault.

FAULT is a `Fault` as JSON. It happens before the ``call``-th call of a function on one rank, so
that production code knows nothing of faults.
"""

import contextlib
import errno
import fcntl
import itertools
import json
import os
import pkgutil
import resource
import signal
import sys
from pathlib import Path
from typing import NamedTuple

from mpisim.cli import entry as cli
from mpisim.core import machine
from tests.trials import disk

# Where a fault can happen: a function. Those that only rank 0 calls come second.
EVERYWHERE = {
    "start": "mpisim.runs.experiment.read",
    "load": "mpisim.runs.setup.ProblemCache.problem",
    "set-up exchange": "mpisim.comm.star.Star.all_workers",
    "gather": "mpisim.comm.star.Star.gather",
    "broadcast": "mpisim.comm.star.Star.broadcast",
    "row": "mpisim.runs.metrics.Evaluator.row",
    "checkpoint": "mpisim.runs.run_state.RunState.dump",
    "end": "mpisim.runs.record.Record.close",
}
ON_RANK_0 = {
    "journal, rows": "mpisim.runs.log.journal.Journal.append",
    "writing": "os.pwrite",
    "log, whole": "mpisim.runs.log.writer.LogWriter._write",
    "log, a column": "mpisim.runs.log.writer._column",
    "log, end": "mpisim.runs.log.writer.LogWriter.finish",
    "journal, end": "mpisim.runs.log.journal.Journal.close",
    "writing a whole file": "os.fsync",
    "replacing a file": "os.replace",
    "naming a new file": "os.link",
}
PLACES = EVERYWHERE | ON_RANK_0
SIGNALS = {"kill": signal.SIGKILL, "kill mpirun": signal.SIGKILL}
SIGNALS |= {"terminate": signal.SIGTERM, "interrupt": signal.SIGINT}
NEVER = 10**9  # a call that does not come
OUT = "out"  # the folder, in that of a fault, in which the log is
GROUPS, LIMIT = Path("/sys/fs/cgroup/memory"), 64 << 20  # of processes whose memory is limited


class Fault(NamedTuple):
    """What happens, where, before which call, and on which rank.

    action : "kill", "kill mpirun", "raise", "terminate", "interrupt", "limit" (of the size of
        files), "fill" (the file system of ``folder``), "use up inodes" (of it), "unwritable" (a
        file takes the place of its folder `OUT`), "cut power" (of that file system), "no locks"
        (the file system has none), "out of memory" (the kernel kills the rank, where root can
        limit its memory)
    spare : bytes that "limit" and "fill" leave; inodes; a flag of `disk.cut`
    mark : a file that is made when it happens
    """

    action: str
    place: str
    call: int
    rank: int = 0
    spare: int = 0
    folder: str = ""
    mark: str = ""

    def happen(self) -> None:
        """Now."""
        Path(self.mark).touch()
        if self.action in SIGNALS:  # to mpirun, if there is one
            mpirun = self.action != "kill" and "OMPI_COMM_WORLD_RANK" in os.environ
            os.kill(os.getppid() if mpirun else os.getpid(), SIGNALS[self.action])
        else:
            getattr(self, "_" + self.action.replace(" ", "_"))()

    def _raise(self) -> None:
        raise RuntimeError("one bad day")

    def _limit(self) -> None:
        sizes = [path.stat().st_size for path in Path(self.folder, OUT).glob("*.h5")]
        limit = max(sizes, default=0) + self.spare
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    def _fill(self) -> None:
        ballast, block = Path(self.folder) / "ballast", bytes(1 << 14)
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(block) == len(block):
                pass
        os.truncate(ballast, max(0, ballast.stat().st_size - self.spare))

    def _use_up_inodes(self) -> None:
        if not os.path.ismount(self.folder):
            return
        ballast = Path(self.folder) / "inodes"
        with contextlib.suppress(OSError):
            ballast.mkdir()
            for number in itertools.count():
                (ballast / str(number)).touch()
        for number in range(self.spare):
            (ballast / str(number)).unlink(missing_ok=True)

    def _out_of_memory(self) -> None:
        with contextlib.suppress(OSError):
            group = GROUPS / f"mpisim-trial-{os.getpid()}"
            group.mkdir()
            (group / "memory.limit_in_bytes").write_text(str(LIMIT))
            (group / "cgroup.procs").write_text(str(os.getpid()))
            hoard = [bytearray(os.urandom(1 << 20)) for _ in range(4 * LIMIT >> 20)]
            print(len(hoard), "MB fit")  # the kernel has not killed it
        os.kill(os.getpid(), signal.SIGKILL)

    def _unwritable(self) -> None:
        out = Path(self.folder, OUT)
        out.mkdir(exist_ok=True)
        out.rename(f"{out}.gone")
        out.touch()

    def _cut_power(self) -> None:
        disk.cut(Path(self.folder), self.spare)

    def _no_locks(self) -> None:
        def flock(*_):
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

        fcntl.flock = flock


def arm(fault: Fault) -> None:
    """Let the fault happen in this process when its time has come."""
    path, _, name = PLACES[fault.place].rpartition(".")
    owner = pkgutil.resolve_name(path)
    original, calls = getattr(owner, name), 0

    def function(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == fault.call:
            fault.happen()
        return original(*args, **kwargs)

    setattr(owner, name, function)


def main() -> int:
    """Run the command line."""
    fault = Fault(**json.loads(sys.argv[1]))
    import mpisim.runs.log.writer

    mpisim.runs.log.writer.FLUSH_SECONDS = 0.05  # so that short jobs write several times
    mpisim.runs.log.writer.BEHIND_SECONDS = 0.1
    if machine.launched_rank() == fault.rank:
        arm(fault)
    return cli.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
