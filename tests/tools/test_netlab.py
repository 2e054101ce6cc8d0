"""The lab's parts that need neither root nor a network."""

import os
import signal

import numpy as np
import pytest

from mpisim.comm.links import Links
from tools.netlab import __main__ as command
from tools.netlab import lab
from tools.netlab.job import Stopped, stoppable
from tools.netlab.lab import Lab


@pytest.mark.parametrize(
    ("break_", "arguments", "said"),
    [
        (("os.geteuid", lambda: 1000), ["true"], "needs root"),
        (("sys.platform", "darwin"), ["true"], "needs Linux"),
        (("shutil.which", lambda tool: None), ["true"], "needs ip, tc, unshare"),
        (None, [], "no command"),
        (None, ["-n", "0", "true"], "0 hosts; allowed: 1 to 250"),
        (None, ["--network", "fast", "true"], "it must be RATE"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(monkeypatch, capsys, break_, arguments, said):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    if break_:
        monkeypatch.setattr(*break_)
    assert command.main(arguments) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and err.startswith("mpisim: ")


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


def test_links_of_server_and_workers():
    assert Lab(3, Links(1e6, 2e6))._rates(0) == (np.inf, np.inf)
    shared = Lab(3, Links(1e6, 2e6, shared=True))
    assert shared._rates(0) == (2e6, 1e6)  # what leaves the server goes down to the workers
    assert shared._rates(1) == shared._rates(2) == (1e6, 2e6)


TC, IP = "tc -n host qdisc add dev eth0", "ip -n host link set eth0"


@pytest.mark.parametrize(
    ("rate", "calls"),
    [
        (np.inf, []),
        # a frame, and 125 us of the rate: 156 and 15,625 bytes
        (1e7, [f"{TC} root tbf rate 10000000bit burst 1756", f"{IP} gso_max_size 1600"]),
        (1e9, [f"{TC} root tbf rate 1000000000bit burst 17225", f"{IP} gso_max_size 15625"]),
    ],
)
def test_shaping(monkeypatch, rate, calls):
    asked = []
    monkeypatch.setattr(lab, "_tool", lambda *words: asked.append(" ".join(words)))
    lab._shape("host", "eth0", rate)
    assert len(asked) == len(calls)
    for call, begin in zip(asked, calls, strict=True):
        assert call.startswith(begin)
