"""Ctrl-C at a terminal, under mpirun: one line says where the run stopped and how to go on."""

import os
import pty
import re
import select
import shlex
import sys
import time
from pathlib import Path

from mpisim.cli import main
from tests.comm.jobs import HANG_SECONDS, ROOT, environment, needs_mpirun
from tests.helpers import columns

RUN = [
    *("--set", "problem={ name = 'logistic', data = 'sample', workers = 2 }"),
    *("--set", "method={ name = 'gd', stepsize = 0.1 }"),
    *("--set", "run.checkpoint_seconds=1"),
]
CTRL_C = b"\x03"


def at_a_terminal(command: list[str], ready: Path) -> str:
    """What a terminal shows of a command that Ctrl-C ends once there is a file ``ready``."""
    # by a shell, which stays while mpirun goes, as at a prompt
    shell = ["/bin/sh", "-c", f"trap : INT; {shlex.join(command)}; sleep 1"]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execve(shell[0], shell, environment())
    shown, end, pressed = b"", time.monotonic() + HANG_SECONDS, False
    try:
        while time.monotonic() < end:
            if not pressed and ready.exists():
                pressed = os.write(terminal, CTRL_C) == 1
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    shown += os.read(terminal, 1 << 16)
                except OSError:  # all that had the terminal have ended
                    return shown.decode()
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    raise AssertionError(f"no end within {HANG_SECONDS:g} s: {shown.decode()}")


@needs_mpirun
def test_a_run_that_is_stopped_says_how_to_go_on(tmp_path, capfd):
    log = tmp_path / "log.h5"
    run = ["run", *RUN, "--out", str(log)]
    command = ["mpirun", "-n", "2", sys.executable, "-m", "mpisim", *run]
    command += ["--set", "run.rounds=100000000"]
    shown = at_a_terminal(command, Path(f"{log}.ckpt.old"))
    lines = [line for line in shown.splitlines() if "mpisim: " in line]
    assert len(lines) == 1 and "Traceback" not in shown, shown
    result = re.search(
        r"mpisim: stopped by Ctrl-C at round (\d+)( or later)?; log (.*); --", lines[0]
    )
    assert result and result[3] == str(log) and lines[0].endswith("--resume continues"), shown
    last = int(result[1])
    rounds = columns(log)["round"]
    if not result[2]:  # mpirun left it the time to end
        assert rounds[-1] == last
    assert main([*run, "--resume", "--set", f"run.rounds={last + 1000}"]) == 0
    assert columns(log)["round"].tolist() == list(range(last + 1001))
    assert (columns(log)["loss"][: len(rounds)] > 0).all()
