"""The comparison of the kernel's counts with a log's ledger."""

import numpy as np
import pytest

from mpisim.runs.log.reader import read
from tools.netlab.check import Count, Experiment, claims_of, ledger_bytes


def test_counts_without_headers_and_envelopes():
    count = Count(ledger=100.0, kernel=100 + 3 * 66 + 2 * 22 + 6, packets=3, messages=2)
    assert count.ratio == pytest.approx(1.06)
    (claim,) = claims_of(Experiment("case", 20, ()), {"host 1 sends": count})
    assert claim.verdict == "does not hold" and "+6.00%" in claim.measured


def test_bytes_of_hosts(make_log):
    """5 workers on 3 ranks of which rank 0 is the server alone: 2 on host 1, 3 on host 2."""
    path = make_log(attrs={"ranks": 3})
    log = read(path)
    log.config["run"]["layout"] = "dedicated"
    log.workers["bits_up"] = np.array([8, 16, 80, 160, 800])
    up, down = ledger_bytes(log)
    framing = 50  # 8 bits a round and worker, 50 rounds, in bytes
    assert np.array_equal(up, [0, 3 + 2 * framing, 130 + 3 * framing])
    assert down == 50 * 4008 / 8
