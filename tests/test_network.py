"""The network model: its text, and seconds worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpisim.errors import InputError
from mpisim.network import Network, Traffic, parse, seconds

WIRE = 1514 / 1448  # bytes on Ethernet for each byte of a full TCP segment


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("100mbit,1ms", Network(1e8, 1e8, 1e-3)),
        ("10mbit/1gbit,50us,shared", Network(1e7, 1e9, 5e-5, shared=True)),
        ("1.5Gbit, ranks", Network(1.5e9, 1.5e9, ranks=True)),
        ("10mbit,shared,ranks,bucket", Network(1e7, 1e7, shared=True, ranks=True, bucket=True)),
        ("unlimited,2s", Network(latency=2.0)),
        ("64kbit/unlimited", Network(up=64e3)),
        ("9600bit,0ms", Network(9600.0, 9600.0)),
        ("3ms", Network(latency=3e-3)),
    ],
)
def test_text_of_a_network(text, network):
    assert parse(text) == network
    assert parse(str(network)) == network


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "100", "100mb", "100mbps", "-1mbit", "0mbit", "nanbit", "1mbit/", "/1mbit"),
        *("1mbit/2mbit/3mbit", "1ms,2ms", "1mbit,1mbit", "shared,shared", "1mbit,,1ms", "1e999s"),
        *("1 mbit", "1mbit;1ms", "slow", "١mbit"),
    ],
)
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match=r"--network .*it must be RATE\[/RATE\]"):
        parse(text)


RATES = st.floats(1e-3, 1e15) | st.just(float("inf"))


@given(RATES, RATES, st.floats(0, 1e6), st.tuples(*[st.booleans()] * 3))
def test_every_network_has_a_text(up, down, latency, words):
    network = Network(up, down, latency, *words)
    back = parse(str(network))
    assert (back.shared, back.ranks, back.bucket) == words
    numbers = back.up, back.down, back.latency
    assert numbers == pytest.approx((up, down, latency), rel=1e-11)


@given(st.text(alphabet="019.,/e+-mkgbitus hard", max_size=30))
def test_any_text_is_a_network_or_one_line(text):
    try:
        network = parse(text)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert min(network.up, network.down) > 0 <= network.latency


def traffic(workers=(0, 2, 1)):
    """Two rows, after 1 and 3 rounds of 3 workers: each sends 1000, then 600, 400 and 200 bits."""
    return Traffic(
        rounds=np.array([1, 3]),
        seconds=np.array([0.5, 0.75]),
        bits_up=np.array([3000, 3000 + 2 * 1200]),
        bits_down=np.array([3 * 800, 3 * 800 * 3]),
        bits_up_max=np.array([1000, 1000 + 2 * 600]),
        workers=np.array(workers),
    )


def test_a_link_for_each_worker():
    # one round: 0.25 s there, 1000 bits up, 0.25 s back, 800 bits down
    first = 0.5 + 2 * 0.25 + WIRE * (1000 / 100 + 800 / 50)
    second = 0.25 + 2 * (2 * 0.25 + WIRE * (600 / 100 + 800 / 50))
    found = seconds(Network(100.0, 50.0, 0.25), traffic())
    assert found == pytest.approx([first, first + second], rel=1e-14)


def test_a_link_of_the_server_that_all_share():
    first = 0.5 + WIRE * (3000 / 100 + 3 * 800 / 50)
    second = 0.25 + 2 * WIRE * (1200 / 100 + 3 * 800 / 50)
    found = seconds(Network(100.0, 50.0, shared=True), traffic())
    assert found == pytest.approx([first, first + second], rel=1e-14)


@pytest.mark.parametrize(
    ("workers", "shared", "up", "copies"),
    [
        ((0, 2, 1), False, 2000, 1),  # the busiest host has two of the three workers
        ((0, 2, 1), True, 3000, 2),
        ((1, 1, 1), False, 1000, 1),  # the server's own worker sends over no link
        ((1, 1, 1), True, 2000, 2),
        ((3,), True, 0, 0),
    ],
)
def test_workers_of_a_rank_on_one_host(workers, shared, up, copies):
    network = Network(100.0, 50.0, 0.125, shared, ranks=True)
    latency = 2 * 0.125 * (copies > 0)
    expected = 0.5 + latency + WIRE * (up / 100 + copies * 800 / 50)
    assert seconds(network, traffic(workers))[0] == pytest.approx(expected, rel=1e-14)


def test_what_a_bucket_holds_takes_no_time():
    # 1600 bytes and 125 us: 12,800 + 125 bits at 1 Mbit/s; rows of 1 and of 2 rounds
    up, down = WIRE * 60_000, WIRE * 3 * 40_000
    one = Traffic(
        rounds=np.array([1, 3]),
        seconds=np.array([0.5, 0.75]),
        bits_up=np.array([60_000, 180_000]),
        bits_down=np.array([120_000, 360_000]),
        bits_up_max=np.array([20_000, 60_000]),
        workers=np.array([0, 2, 1]),
    )
    first = 0.5 + (up + down - 2 * (12_800 + 125)) / 1e6
    second = 0.25 + 2 * (up + down - 2 * (12_800 + 125)) / 1e6
    found = seconds(Network(1e6, 1e6, shared=True, bucket=True), one)
    assert found == pytest.approx([first, first + second], rel=1e-14)


@pytest.mark.parametrize("down", [1e6, np.inf])
def test_a_message_that_the_bucket_holds_is_there_at_once(down):
    found = seconds(Network(1e6, down, bucket=True), traffic())
    assert found == pytest.approx([0.5, 0.75], rel=1e-14)


def test_without_limits_the_measured_seconds_are_left():
    assert np.array_equal(seconds(Network(), traffic()), [0.5, 0.75])
