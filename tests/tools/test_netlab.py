"""The network lab: its parts, its comparison with the ledger, and a job across namespaces."""

import os
import signal
import subprocess

import numpy as np
import pytest

from mpisim.comm.links import Links
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read
from tests.comm.jobs import HANG_SECONDS, ROOT
from tests.handmade_logs import PHASES
from tools.netlab import __main__ as command
from tools.netlab.check import (
    TOLERANCE,
    Count,
    Experiment,
    claims_of,
    ledger_bytes,
    measure,
    timed,
    timing,
)
from tools.netlab.job import Stopped, require_open_mpi, stoppable
from tools.netlab.lab import Lab


@pytest.mark.parametrize(
    ("break_", "arguments", "message"),
    [
        (("os.geteuid", lambda: 1000), ["true"], "needs root"),
        (("sys.platform", "darwin"), ["true"], "needs Linux"),
        (("shutil.which", lambda tool: None), ["true"], "needs ip, tc, unshare"),
        (None, [], "no command"),
        (None, ["-n", "0", "true"], "0 hosts; allowed: 1 to 250"),
        (None, ["--network", "fast", "true"], "it must be RATE"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(monkeypatch, capsys, break_, arguments, message):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    if break_:
        monkeypatch.setattr(*break_)
    assert command.main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1 and err.startswith("mpisim: ")


def test_a_signal_ends_the_job_and_what_is_around_it():
    before = signal.getsignal(signal.SIGTERM)
    cleaned = False
    with pytest.raises(Stopped, match="SIGTERM") as raised, stoppable():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGINT)  # too late to disturb
            cleaned = True
    assert cleaned and raised.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_counts_without_headers_and_envelopes():
    count = Count(ledger=100.0, kernel=100 + 3 * 66 + 2 * 22 + 6, packets=3, messages=2)
    assert count.ratio == pytest.approx(1.06)
    (claim,) = claims_of(Experiment("case", 20, ()), {"host 1 sends": count})
    assert claim.verdict == "does not hold" and "+6.00%" in claim.measured


def dedicated(path):
    """A log as if rank 0 had been the server alone."""
    log = read(path)
    log.config["run"]["layout"] = "dedicated"
    return log


def test_bytes_of_hosts(make_log):
    """5 workers on 3 ranks of which rank 0 is the server alone: 2 on host 1, 3 on host 2."""
    log = dedicated(make_log(attrs={"ranks": 3}))
    log.workers["bits_up"] = np.array([8, 16, 80, 160, 800])
    up, down = ledger_bytes(log)
    framing = 50  # 8 bits a round and worker, 50 rounds, in bytes
    assert np.array_equal(up, [0, 3 + 2 * framing, 130 + 3 * framing])
    assert down == 50 * 4008 / 8


def test_seconds_without_acknowledgements(make_log):
    """Runs of 10 and of 110 rounds with a message of 20 bytes in each, of 5 workers on 6 ranks."""

    def logs(of_a_round):
        for rounds in (10, 110):
            k = np.arange(rounds + 1)
            names = ("framing_bits_up", "bits_down", "framing_bits_down")
            columns = {name: 0 * k for name in (*names, *(f"time_{phase}" for phase in PHASES))}
            columns |= {"bits_up": 160 * k, "messages_up": k, "time_compute": of_a_round * k}
            yield dedicated(make_log(rounds=rounds, columns=columns, attrs={"ranks": 6}))

    link = 8 * (20 + 22 + 66) / 2e5  # seconds, more than a round's own
    result = timing(tuple(logs(1e-4)), tuple(logs(0.011)), packets=100 + 250)
    assert result.modelled == pytest.approx(100 * link)
    assert result.measured == pytest.approx(1.1)
    assert result.acknowledging == pytest.approx(250 * 66 * 8 / 2e5)
    assert result.error == pytest.approx(100 * link / (1.1 - 0.66) - 1)
    assert timed(Experiment("case", 110, ()), result).verdict == "holds"


LEFTOVER = "mpisim-999999999-0"  # of a lab that was killed: no process has such a number
WORDS = (
    "problem={ name = 'quadratic', dimension = 5000, noise = 0.1 }",
    "method={ name = 'dcgd', stepsize = 0.01 }",
    "compressor={ name = 'randk', k = 2500 }",
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
        counts = measure(lab, Experiment("DCGD, RandK", 110, WORDS))
        log = read(lab.folder / "check.h5")
    assert lab.name not in spaces() and not lab.folder.exists()
    assert log.attrs["hosts"] == "netlab0, netlab1, netlab2"
    assert log.attrs["network"] == "200mbit,shared,ranks,bucket"
    assert [round(count.ledger) for count in counts.values()] == [1_000_000, 2_000_000] * 2
    for what, count in counts.items():
        assert abs(count.ratio - 1) <= TOLERANCE, what
