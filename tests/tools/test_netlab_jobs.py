"""A job across network namespaces, and what the kernel counted there."""

import subprocess

import pytest

from mpisim.comm.links import Links
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read
from tests.comm.jobs import HANG_SECONDS, ROOT
from tools.netlab.check import TOLERANCE, Experiment, measure
from tools.netlab.job import require_open_mpi
from tools.netlab.lab import Lab

LEFTOVER = "mpisim-999999999-0"  # of a lab that was killed: no process has such a number
CASE = Experiment(
    "DCGD, RandK",
    110,
    (
        "problem={ name = 'quadratic', dimension = 5000, noise = 0.1 }",
        "method={ name = 'dcgd', stepsize = 0.01 }",
        "compressor={ name = 'randk', k = 2500 }",
    ),
)


def spaces() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout


@pytest.fixture
def leftover():
    """A namespace in which a process still runs; skips where no lab can be made."""
    try:
        require_open_mpi()
        with Lab(1, Links(1e6, 1e6)):
            pass
    except InputError as error:
        pytest.skip(str(error))
    subprocess.run(["ip", "netns", "add", LEFTOVER], check=True)
    with subprocess.Popen(["ip", "netns", "exec", LEFTOVER, "sleep", "1000"]) as sleeper:
        yield sleeper
        sleeper.kill()


@pytest.mark.netlab
def test_the_kernel_counts_what_the_ledger_says(leftover, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with Lab(3, Links(2e8, 2e8, shared=True)) as lab:
        assert leftover.wait(timeout=HANG_SECONDS) == -9 and LEFTOVER not in spaces()
        assert spaces().count(lab.name) == 4  # three hosts and the bridge
        counts = measure(lab, CASE)
        log = read(lab.folder / "check.h5")
    assert lab.name not in spaces() and not lab.folder.exists()
    assert log.attrs["hosts"] == "netlab0, netlab1, netlab2"
    assert log.attrs["network"] == "200mbit,shared,ranks,bucket"
    assert [round(count.ledger) for count in counts.values()] == [1_000_000, 2_000_000] * 2
    for what, count in counts.items():
        assert abs(count.ratio - 1) <= TOLERANCE, what
