"""The comparison of the kernel's counts with a log's ledger."""

import numpy as np
import pytest

from mpisim.runs.log.reader import read
from tools.netlab.check import Count, Experiment, claims_of, ledger_bytes, timed, timing


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


def test_seconds_without_acknowledgements(make_log):
    """Runs of 10 and of 110 rounds with a message of 20 bytes in each, of 5 workers on 6 ranks."""

    def logs(of_a_round):
        for rounds in (10, 110):
            k = np.arange(rounds + 1)
            names = ("bits_up", "messages_up", "framing_bits_up", "bits_down", "framing_bits_down")
            columns = dict(zip(names, (160 * k, k, 0 * k, 0 * k, 0 * k), strict=True))
            columns |= {"time_compute": of_a_round * k, "time_communicate": 0 * k}
            columns |= {f"time_{name}": 0 * k for name in ("compress", "encode", "decode", "other")}
            columns |= {f"time_{name}": 0 * k for name in ("server", "optimizer")}
            log = read(make_log(rounds=rounds, columns=columns, attrs={"ranks": 6}))
            log.config["run"]["layout"] = "dedicated"
            yield log

    link = 8 * (20 + 22 + 66) / 2e5  # seconds, more than a round's own
    found = timing(tuple(logs(1e-4)), tuple(logs(0.011)), packets=100 + 250)
    assert found.modelled == pytest.approx(100 * link)
    assert found.measured == pytest.approx(1.1)
    assert found.acknowledging == pytest.approx(250 * 66 * 8 / 2e5)
    assert found.error == pytest.approx(100 * link / (1.1 - 0.66) - 1)
    assert timed(Experiment("case", 110, ()), found).verdict == "holds"
