"""`mpisim fleet`: seconds by hand, against order statistics, and against the network model."""

import csv
import dataclasses
import io
from math import comb

import numpy as np
import pytest

from mpisim.analysis import fleet_seconds as seconds_of_fleets
from mpisim.analysis.costs import Target
from mpisim.analysis.fleet_rounds import Rounds, fedscale, made, rounds_of
from mpisim.analysis.fleet_seconds import seconds
from mpisim.analysis.fleet_table import FleetCosts
from mpisim.analysis.link_model import ModelledSeconds, Traffic
from mpisim.cli import main
from mpisim.comm.fleet import Fleet
from mpisim.comm.links import on_wire, parse
from mpisim.core.rng import purpose_key
from mpisim.runs.log.reader import read
from tests.comm.jobs import python
from tests.helpers import calls_of, some_of


def rounds(n, rows, up=1e6, senders=None, down=0.0, base=0.0, calls=None, most=None, every=1):
    """Every row: ``senders`` (n unless given) messages of ``up`` bits a round, a copy ``down``."""
    k, r = every * np.arange(1, rows + 1), n if senders is None else senders
    traffic = Traffic(
        k, k * base, k * r * up, k * n * down, k * (most or up), np.array([n]), k * float(r)
    )
    return made(traffic, k * base, k * (calls or 0.0), None)


@some_of(2, text=["10mbit/50mbit,20ms", "1mbit", "unlimited,3ms", "64kbit/1gbit"])
def test_equal_clients_take_the_seconds_of_the_network_model_exactly(make_log, text):
    more = np.cumsum(np.random.default_rng(0).integers(100, 5000, 51))
    few = np.cumsum(np.random.default_rng(1).integers(1, 5, 51))
    sent = np.cumsum(np.arange(51) % 3 > 0)  # in some rounds nobody sends
    silent = {"bits_up": 5 * 320 * sent, "bits_up_max": 320 * sent, "messages_up": 5 * sent}
    columns = [{}, {"bits_up": 5 * more, "bits_up_max": 2 * more}]
    columns += [silent | {"framing_bits_up": 5 * 8 * sent}]
    columns += [{"bits_up": 320 * few, "bits_up_max": 320 * np.arange(51)}]
    for values in columns:
        log = read(make_log(columns=values))
        expected = ModelledSeconds("seconds", True, links=parse(text)).values(log)
        assert np.array_equal(seconds(rounds_of(log, Fleet(text)), Fleet(text)).seconds, expected)


def test_the_fastest_r_of_those_invited_is_an_order_statistic():
    # with all of n invited, the r-th fastest of the n clients
    bits, n, r = 1_000_000.0, 30, 7
    fleet = Fleet("1mbit/unlimited", sigma=1.0, invited=n)
    taken = on_wire(np.array([bits]), 1)[0] / fleet.clients(np.arange(n)).up
    result = seconds(rounds(n, 3, bits, r), fleet).seconds
    assert result == pytest.approx(np.sort(taken)[r - 1] * np.arange(1, 4), rel=1e-12)
    alone = Fleet("1mbit/unlimited", sigma=1.0)
    result = np.diff(seconds(rounds(n, 3000, bits, r), alone).seconds)
    # the slowest of r of n, drawn without replacement: the k-th with C(k - 1, r - 1) / C(n, r)
    chances = np.array([comb(k - 1, r - 1) for k in range(1, n + 1)]) / comb(n, r)
    expected, error = chances @ np.sort(taken), result.std() / np.sqrt(len(result))
    assert error < 0.03 * expected and abs(result.mean() - expected) < 4 * error


def test_the_slowest_by_hand():
    fleet = Fleet(["100bit/50bit,250ms", "80bit/200bit"], devices=[2.0, 1.0])
    k = np.array([1, 3])
    traffic = Traffic(k, 0.5 * k, 2000.0 * k, 1600.0 * k, 1000.0 * k, np.array([2]), 2.0 * k)
    case = made(traffic, 0.4 * k, 10.0 * k, None)  # 0.1 s are the server's
    wire = on_wire(np.array([1000.0, 800.0]), 1)
    first = 0.5 + 0.4 + 2 * 0.25 + wire[0] / 100 + wire[1] / 50
    second = 0.5 + wire[0] / 80 + wire[1] / 200
    assert seconds(case, fleet).seconds == pytest.approx(max(first, second) * k, rel=1e-13)
    # a client alone takes 3 s a sample; the row's 10 samples are those of two
    alone = made(traffic, 0.4 * k, 10.0 * k, 3.0)
    assert seconds(alone, fleet).seconds[0] == pytest.approx(first - 0.9 + 0.1 + 2 * 15, rel=1e-13)


def test_rows_of_several_rounds_count_the_messages_of_all_of_them():
    fleet = Fleet("1mbit", dropout=0.2)
    case = rounds(20, 60, senders=6, every=10)
    assert seconds(case, fleet).left_out[-1] == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("senders", [20, 6])
def test_what_is_left_out_is_that_until_a_row(senders):
    fleet = Fleet("1mbit", deadline=0.1)
    case = rounds(20, 30, senders=senders, every=5)
    times = np.where(np.arange(30) < 10, 5, 2)
    up = np.where(np.arange(30) < 15, case.up, 1e3)  # a second a round, and later none
    case = dataclasses.replace(case, up=up, most=up, times=times)
    expected = np.cumsum(times * (up > 1e3)) / np.cumsum(times)
    assert seconds(case, fleet).left_out == pytest.approx(expected)


def test_a_target_has_what_is_left_out_until_it_is_met(make_log):
    k = np.arange(51)
    sent = np.cumsum(np.where(k <= 10, 1e6, 1e3))
    log = read(make_log(columns={"bits_up": 5 * sent, "bits_up_max": sent}))
    targets = [Target("round", level, rises=True) for level in (10, 50)]
    costs = FleetCosts([log], [Fleet("1mbit", deadline=0.5)], targets, draws=2)
    assert [cost.left_out for cost in costs] == pytest.approx([1, 11 / 51])


@pytest.mark.parametrize("senders", [40, 20])
def test_dropouts_and_deadlines(senders):
    n, rows, bits = 40, 300, 10_000.0
    wire = on_wire(np.array([bits]), 1)[0]
    plain = Fleet(["1kbit/unlimited", "100bit/unlimited"])  # the slow half takes ten times as long
    fast, slow = wire / 1e3, wire / 100
    limit = Fleet(plain.links, deadline=(fast + slow) / 2)
    result = seconds(rounds(n, rows, bits, senders), limit)
    assert result.left_out[-1] == pytest.approx(0.5, abs=0.02)
    assert np.diff(result.seconds) == pytest.approx(limit.deadline)
    for drops, share in (({"dropout": 0.2}, 0.2), ({"availability": 0.7}, 0.3)):
        fleet = Fleet("1kbit/unlimited", **drops)
        lost = seconds(rounds(n, rows, bits, senders), fleet)
        assert lost.left_out[-1] == pytest.approx(share, abs=0.03)
        assert np.diff(lost.seconds) == pytest.approx(fast)  # some client is always there
        waits = Fleet("1kbit/unlimited", deadline=2 * fast, **drops)
        taken = np.diff(seconds(rounds(n, rows, bits, senders), waits).seconds)
        late = np.isclose(taken, 2 * fast)
        assert taken[~late] == pytest.approx(fast)
        # the server knows who is not there, and waits for one of many that drops out
        expected = 0.0 if "availability" in drops else 1 - 0.8**senders
        assert late.mean() == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    "keys",
    [
        {"devices": [0.5, 3.0]},
        {"deadline": 60.0},
        {"availability": 0.5},
        {"dropout": 0.3},
        {"availability": 0.6, "dropout": 0.1, "deadline": 300.0},
    ],
)
def test_nobody_is_slower_than_the_slowest(keys, monkeypatch):
    """All clients in all of 100 unlike rounds, in NumPy; presence at its address, one by one."""
    monkeypatch.setattr(seconds_of_fleets, "BLOCK", 100)
    n, rows, rng = 3000, 100, np.random.default_rng(1)
    fleet = Fleet("mlab:world", **keys)
    up = np.where(rng.random(rows) < 0.1, 1e6, 1e4) * rng.uniform(1, 2, rows)
    computing, server = rng.exponential(0.1, rows), rng.random(rows)
    case = Rounds(
        n, np.full(rows, n), np.ones(rows), np.arange(rows), computing + server, computing,
        np.full(rows, 2.0), up, up, np.full(rows, 3e4), np.ones(rows), up,
        *np.zeros((2, rows), bool),
    )  # fmt: skip
    limit, c = fleet.deadline or np.inf, fleet.clients(np.arange(n))
    factor, latency, up_rate, down_rate = (a[:, None] for a in (c.factor, c.latency, c.up, c.down))
    taken = server + factor * computing + 2 * latency + up / up_rate + 3e4 / down_rate
    key = [fleet.seed, int(purpose_key("fleet/presence"))]
    at = [np.random.Philox(key=key, counter=[0, 0, i, 0]).random_raw(rows) for i in range(n)]
    u = (np.array(at) >> np.uint64(11)) * 2.0**-53
    absent = u < 1 - fleet.availability * (1 - fleet.dropout)
    drops = absent & (u >= 1 - fleet.availability)
    taken_of = np.where(absent, np.where(drops & (limit < np.inf), limit, 0.0), taken)
    result = seconds(case, fleet)
    expected = np.minimum(np.maximum(taken_of.max(axis=0), server), limit)
    assert np.diff(result.seconds, prepend=0) == pytest.approx(expected, rel=1e-12)
    left_out = (absent | (taken > limit)).mean()
    assert result.left_out[-1] == pytest.approx(left_out, abs=4 / np.sqrt(n * rows))


def test_the_client_that_sends_most_is_any_of_them_and_may_be_away():
    bits, rows = 10_000.0, 2000
    wire = on_wire(np.array([bits]), 1)[0]

    def share(n, senders, fleet, slow):
        """Of the rounds that wait for twice the bits at the rate ``slow``."""
        case = rounds(n, rows, bits, senders)
        case = dataclasses.replace(case, most=2 * case.up)
        taken = np.diff(seconds(case, fleet).seconds)
        return np.isclose(taken, 2 * wire / slow).mean()

    for drops in ({"availability": 0.5}, {"dropout": 0.5}):
        away = Fleet("1kbit/unlimited", **drops)
        assert share(10, 10, away, 1e3) == pytest.approx(0.5, abs=0.05)
    for place in range(3):  # the slow one is among two of three, and either of these sends most
        links = ["1kbit/unlimited"] * 3
        links[place] = "100bit/unlimited"
        assert share(3, 2, Fleet(links), 1e2) == pytest.approx(1 / 3, abs=0.05)


def test_a_round_of_a_hundred_clients_of_the_us():
    """An outside estimate for 10^6 weights, both ways: 507 s uncompressed, and 28 s for one client;
    16 s for a bit a weight, 7 s for TopK with 1%."""
    fleet = Fleet("mlab:US")

    def taken(bits, clients=100, draws=200):
        case = rounds(clients, 1, bits, down=bits)
        return np.array([seconds(case, fleet, seed).seconds[0] for seed in range(draws)])

    assert np.median(taken(32e6)) == pytest.approx(507, rel=0.02)
    assert np.mean(taken(32e6, 1, 1000)) == pytest.approx(28, rel=0.05)
    assert np.median(taken(1e6)) == pytest.approx(16, rel=0.02)
    # indices at their entropy, 8 bits, and of 20 bits
    assert np.median(taken(40 * 1e4)) < 7 < np.median(taken(52 * 1e4))


def test_fedscale_by_hand():
    fleet = Fleet("1kbit/2kbit,9ms", devices=[2.0])
    case = fedscale(rounds(4, 2, up=500.0, down=300.0, base=5.0, calls=4 * 8.0), ms=10.0)
    expected = 3 * 8 * 2 * 10.0 / 1000 + (500 + 300) / 2000
    assert seconds(case, fleet).seconds == pytest.approx(expected * np.array([1, 2]), rel=1e-13)


def test_the_command(make_log, command, tmp_path):
    paths = [make_log(rate=0.2), make_log(rate=0.2, seed=2), make_log("diana")]
    words = ["--fleet", "1mbit", "--fleet", "mlab:BR", "--draws", "5", "--csv"]
    words += ["--set", "fleet.devices=phones"]
    picture = tmp_path / "fleet.png"
    text = command("fleet", *paths, *words, "--target", "grad_norm_sq=1e-2", "-o", picture)
    rows = list(csv.DictReader(io.StringIO(text.rpartition("\nwrote")[0])))
    assert [row["name"] for row in rows] == ["MARINA", "MARINA", "DIANA", "DIANA"]
    assert rows[0]["fleet"] == "1mbit, devices phones" and rows[0]["runs"] == "2"
    low, middle, high = (float(rows[1][f"seconds_p{level}"]) for level in (5, 50, 95))
    assert 0 < low < middle < high and rows[2]["seconds_p50"]
    assert picture.stat().st_size > 1000
    assert "round ≥ 50" in command("fleet", paths[0], "--fleet", "mlab:BR", "--draws", "2")
    file = tmp_path / "fleet.toml"
    file.write_text('[fleet]\nlinks = "1mbit"\ndevices = "phones"\n')
    text = command("fleet", paths[0], "--fleet", file, "--set", "fleet.links=2mbit", "--csv")
    assert "2mbit, devices phones" in text  # --set wins over the file


def test_runs_that_take_no_seconds_and_runs_without_rows(make_log, command):
    """They have no place on the picture's logarithmic axis, and no last round."""
    nothing = dict.fromkeys(("bits_up", "bits_down", "messages_up", "oracle_calls"), np.zeros(1))
    start, empty = make_log(rounds=0, columns=nothing), make_log(rounds=-1)
    line = command("fleet", start, "--fleet", "1mbit", "-o", start.with_suffix(".png"), code=2)
    assert "--out: no setting" in line.splitlines()[-1]
    table = command("fleet", empty, "--fleet", "1mbit", "--csv")
    assert table.splitlines()[-1].split(",")[-4:] == ["", "", "", "0.0"]


def test_a_log_with_its_own_clock_is_left_out_with_a_line(make_log, command, capfd):
    clock, other = make_log("diana", columns={"simulated_seconds": np.arange(51.0)}), make_log()
    assert main(["fleet", str(other), str(clock), "--fleet", "1mbit", "--draws", "2"]) == 0
    out, err = capfd.readouterr()
    assert "MARINA" in out and "DIANA" not in out and err.count("\n") == 1
    assert err.startswith(f"{clock}: left out: ran on a fleet's clock")
    assert "left out" in command("fleet", clock, "--fleet", "1mbit", code=2)
    for words in (["show", "--target", "round>=9"], ["plot", "-o", clock.with_suffix(".png")]):
        line = command(*words, other, clock, "--network", "1mbit", code=2)
        assert f"{clock}: ran on a fleet's clock; see its column simulated_seconds" in line


def test_a_million_clients_and_a_thousand_rounds_in_little_memory(make_log, command, monkeypatch):
    """Peak memory of the command, kernels on the disk; a client is drawn once for all rounds."""
    n, k = 10**6, np.arange(1001)
    sent = {"bits_up": 320 * n * k, "bits_down": 320 * n * k, "messages_up": n * k}
    sent |= dict.fromkeys(("framing_bits_up", "framing_bits_down"), 0 * k)
    million = make_log(rounds=1000, columns=sent, attrs={"workers": n, "ranks": 1})
    words = "fleet", "--fleet", "mlab:US", "--set", "fleet.dropout=0.05", "--draws", "2"
    command(*words, million)  # compiles
    script = "import sys; from mpisim.cli import main; main(sys.argv[1:]);"
    script += "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    shown = python(script, *words, str(million))
    assert "1000" in shown and int(shown.splitlines()[-1]) < 300e3  # kilobytes
    drawn = calls_of(monkeypatch, Fleet, "clients")
    fleet = Fleet("mlab:US")
    assert len(seconds(rounds_of(read(million), fleet), fleet).seconds) == 1001
    drawn = [len(which) for _, which, *_ in drawn]
    assert sum(drawn) == n and max(drawn) <= 2**14
