"""Claims of the lab's seconds, on logs whose seconds are known."""

import numpy as np
import pytest

from mpisim.analysis.claims import on_seconds, state
from mpisim.analysis.claims.judging import claim_again
from mpisim.analysis.claims.verdicts import Evidence, Verdict
from mpisim.runs.log.reader import read
from run.netlab import fleet
from run.netlab.crossover import claims

EXTRA = 8 * (22 + 66)  # bits of a message that fits a packet
ROUNDS = 100
# 2 workers, each on its own rank: bits a round and worker, seconds a round without a network
METHODS = {"gd": (8000, 1e-3), "marina": (2000, 1.5e-3), "diana": (1000, 3e-3)}
NETWORKS = {"1mbit": 1e6, "4mbit": 4e6, "unlimited": np.inf}


@pytest.fixture
def make_logs(make_log):
    """A function that makes the logs, with an error of the links' seconds, as a share of them."""

    def make(error=0.0, networks=NETWORKS):
        logs = []
        for text, rate in networks.items():
            for method, (bits, of_a_round) in METHODS.items():
                links = 2 * 2 * (bits + EXTRA) / rate * (1 + error)
                k = np.arange(ROUNDS + 1)
                columns = {"bits_up": 2 * bits * k, "bits_down": 2 * bits * k, "messages_up": 2 * k}
                columns |= {f"framing_bits_{way}": 0 * k for way in ("up", "down")}
                columns |= {"bits_up_max": bits * k, "time_compute": (of_a_round + links) * k}
                path = make_log(
                    method=method,
                    rounds=ROUNDS,
                    columns=columns,
                    drop=[f"time_{p}" for p in ("compress", "encode", "decode", "server")]
                    + ["time_optimizer", "time_other", "time_communicate"],
                    attrs={"network": f"{text},shared,ranks", "ranks": 3, "workers": 2},
                )
                log = read(path)
                log.config["run"]["layout"] = "dedicated"
                logs.append(log)
        return logs

    return make


def test_the_model_is_exact_where_links_are_as_it_says(make_logs):
    result = list(claims(make_logs()))
    assert all(claim.verdict == "holds" for claim in result), result
    assert [len(claim.evidence) for claim in result] == [2, 2, 2, 2 * 3]
    # a round of GD and of MARINA take equally long where 4 (8000 - 2000) / rate = 0.5 ms
    turn = result[2].evidence[0]
    assert turn.where == "MARINA"
    expected = pytest.approx(4 * 6000 / 0.5e-3, rel=0.02)  # a grid of 200 a decade
    assert turn.numbers["model"] == expected


def test_seconds_of_more_ranks_than_cores_decide_nothing(make_log):
    """What was measured stays, and nobody who judges the record again takes it for a verdict."""

    def cases(**attrs):
        log = read(make_log(attrs=attrs))
        return [fleet.Seconds(case, 1.0, 1.02, [log]) for case in fleet.CASES]

    assert [claim.verdict for claim in fleet.claims(cases())] == ["holds", "holds"]
    for claim in fleet.claims(cases(oversubscribed=1)):
        assert claim.verdict == "not decided" and "more ranks than cores" in claim.measured
        assert {one.verdict for one in claim.evidence} == {"not decided"}
        assert claim_again(claim) == claim
    one = next(fleet.claims(cases(oversubscribed=1))).evidence[0]
    assert one.measured == "1.02 s for 1.00 s, +2.0%"
    logs = [read(make_log(attrs={"oversubscribed": 1}))]
    compared = state("", "", "", [Evidence("", "", Verdict.HOLDS, {"by_target": {}}, word="fewer")])
    assert not on_seconds(compared, logs).evidence
