"""Who sent in a run, drawn once more from its log: against simulated rounds and plain draws."""

import numpy as np
import pytest

from mpisim.analysis.fleet.rounds import rounds_of, who_sent
from mpisim.analysis.fleet.seconds import seconds
from mpisim.comm.fleet import Fleet
from mpisim.comm.links import on_wire
from mpisim.core.rng import Draw, Streams
from mpisim.runs.log.reader import read
from tests.helpers import columns, run_tables
from tests.methods import loops
from tests.methods.loops import SEED, N

LINKS = ["1mbit/4mbit,10ms", "300kbit/1mbit,40ms", "50kbit/2mbit,1ms", "2mbit,300ms"]
KEYS = {"links": LINKS, "devices": [1.0, 3.0, 0.5, 2.0, 8.0], "seconds": 1e-3}
RANDK = {"name": "randk", "k": 20}
METHODS = {
    "fedavg": {"local_steps": 2, "participants": 3},
    "pp-marina": {"p": 0.3, "participants": 4},
    "diana": {"alpha": 0.4},
}  # DASHA computes a second gradient on a clock, as a client may have been away


def log_of(tmp_path, name, keys, compressor=RANDK, fleet=None, **run):
    tables = loops.tables({"name": name} | keys, compressor, rounds=30, **run)
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.h5"
    run_tables(tables | ({"fleet": fleet} if fleet else {}), path)
    return path


def modelled(path, keys=KEYS, seed=1):
    """Seconds of the clients alone: a server's seconds are none."""
    log = read(path)
    for name in log.columns:
        if name.startswith("time_"):
            log.columns[name] = np.zeros(log.rows)
    fleet = Fleet(**keys)
    return seconds(rounds_of(log, fleet), fleet, seed).seconds


@pytest.mark.parametrize("name", METHODS)
def test_seconds_after_the_fact_are_those_of_a_simulated_run(name, tmp_path):
    plain = log_of(tmp_path, name, METHODS[name])
    timed = log_of(tmp_path, name, METHODS[name], fleet=KEYS | {"simulate": True})
    expected = columns(timed)["simulated_seconds"]
    assert modelled(plain) == pytest.approx(expected, rel=1e-9)
    # the run's participants are no draw of the fleet
    assert np.array_equal(modelled(plain, seed=2), modelled(plain, seed=1))


def test_idle_clients_of_a_compressor(tmp_path):
    p = 0.4
    path = log_of(tmp_path, "dcgd", {}, {"name": "bernoulli", "p": p})
    rows, (who, several) = columns(path), who_sent(read(path))
    d = int(read(path).attrs["dimension"])
    up, down = (on_wire(np.array([bits]), 1)[0] for bits in (64.0 * d, 64.0 * d))
    c, m = Fleet(**KEYS).clients(np.arange(N)), rows["oracle_calls"][-1] / 30 / N
    taken, now = 2 * c.latency + up / c.up + down / c.down + m * 1e-3 * c.factor, [0.0]
    for k in range(30):
        sends = Draw(Streams(SEED), "up", k, 0, N).uniforms(1)[:, 0] < p
        assert np.array_equal(who(k), np.flatnonzero(sends))
        now.append(now[-1] + taken[sends].max(initial=0.0))
    assert several == 1 and np.diff(rows["messages_up"]).min() < N
    some = np.diff(rows["messages_up"]) > 0
    assert np.diff(modelled(path))[some] == pytest.approx(np.diff(now)[some], rel=1e-9)


def test_a_client_that_sends_two_messages_is_one_client(tmp_path):
    path = log_of(tmp_path, "scaffold", {"local_steps": 2, "participants": 2})
    who, several = who_sent(read(path))
    assert several == 2 and np.diff(columns(path)["messages_up"]).tolist() == [4] * 30
    for k in (0, 7):
        assert who(k).tolist() == Draw(Streams(SEED), "sample", k, 0, 1).subsets(N, 2)[0].tolist()
    slow = {"links": ["1gbit", "1gbit", "1gbit", "1kbit"], "seconds": 0.0}
    waits = np.diff(modelled(path, slow)) > 1
    assert waits.tolist() == [3 in who(k).tolist() for k in range(30)]


def test_participants_that_the_log_does_not_say_are_drawn_by_the_fleet(tmp_path):
    few = log_of(tmp_path, "pp-marina", METHODS["pp-marina"], log_every=5)
    assert who_sent(read(few)) == (None, 1)
    log = read(log_of(tmp_path, "fedavg", METHODS["fedavg"]))
    log.columns["messages_up"] = log.columns["messages_up"] * 4 // 3
    assert who_sent(log) == (None, 1)
