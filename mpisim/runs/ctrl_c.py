"""Ctrl-C under Open MPI's mpirun.

Its ranks are in process groups of their own, so the terminal sends SIGINT to mpirun alone. That
forwards no more output, sends SIGTERM to the ranks a quarter of a second later and SIGKILL after
another one. So rank 0 starts a small process in mpirun's group, which hears Ctrl-C at once, passes
it on to rank 0, and, when rank 0 has ended or has been killed, writes its last words to the
terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

RANK = "OMPI_COMM_WORLD_RANK"
TERMINAL = "/dev/tty"
LONGEST = 4000  # bytes of a line, which a pipe takes whole


class LastWords:
    """What the terminal shows if Ctrl-C ends this process."""

    def __init__(self, process: subprocess.Popen[bytes]):
        self._process = process
        assert process.stdin is not None
        self._pipe = process.stdin
        os.set_blocking(self._pipe.fileno(), False)

    @classmethod
    def start(cls) -> LastWords | None:
        """On rank 0 of an mpirun at a terminal; None elsewhere."""
        if os.environ.get(RANK) != "0":
            return None
        try:
            os.close(os.open(TERMINAL, os.O_WRONLY | os.O_NOCTTY))  # fails without a terminal
            import subprocess

            group = os.getpgid(os.getppid())
            if group == os.getpgrp():  # what started this process is not mpirun
                return None
            quiet = subprocess.DEVNULL
            command = [sys.executable, "-I", "-S", __file__]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, process_group=group
            )
        except OSError:
            return None
        return cls(process)

    def say(self, line: str) -> None:
        """Set the line that Ctrl-C prints; an empty one prints nothing."""
        with contextlib.suppress(OSError):
            os.write(self._pipe.fileno(), line.encode(errors="replace")[:LONGEST] + b"\n")

    def close(self) -> None:
        """Let them be written, if Ctrl-C was pressed."""
        with contextlib.suppress(OSError):
            self._pipe.close()
        self._process.wait()


def main() -> None:
    """The small process: pass the first SIGINT on, and write the last line of standard input."""
    rank = os.getppid()
    pressed: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        if not pressed:
            pressed.append(number)
            with contextlib.suppress(OSError):
                os.kill(rank, signal.SIGINT)

    signal.signal(signal.SIGINT, pass_on)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    last = b""
    for line in sys.stdin.buffer:
        last = line
    if pressed and last.strip():
        with contextlib.suppress(OSError), open(TERMINAL, "wb", buffering=0) as terminal:
            terminal.write(last)


if __name__ == "__main__":
    main()
