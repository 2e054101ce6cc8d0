"""Fleets: drawn clients against the table of Measurement Lab, and against closed forms."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from mpisim.comm import fleet_data
from mpisim.comm.fleet import Fleet
from mpisim.core.errors import InputError
from mpisim.core.numerics.functions import exp

MILLION = np.arange(1_000_000)
LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])


def measured(code, name):
    """The nine quantiles of a country, as the file has them."""
    lines = Path(fleet_data.__file__).with_name("mlab.csv").read_text().splitlines()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        if row["country"] == code:
            return np.array([float(row[f"{name}_p{round(100 * p)}"]) for p in LEVELS])
    raise LookupError(code)


@pytest.mark.parametrize("code", ["US", "DE", "BR", "IN"])
def test_a_million_clients_have_the_quantiles_of_their_country(code):
    clients = Fleet(f"mlab:{code}").clients(MILLION)
    for name, values, levels in (
        ("up", clients.up / 1e6, LEVELS),
        ("down", clients.down / 1e6, LEVELS),
        ("rtt", 2e3 * clients.latency, 1 - LEVELS),  # p1 is the highest
    ):
        assert np.quantile(values, levels) == pytest.approx(measured(code, name), rel=0.02)
    lost = measured(code, "loss")
    found = np.quantile(clients.loss, 1 - LEVELS)
    assert found == pytest.approx(lost, rel=0.02, abs=2e-4)


def test_the_world_is_the_mixture_of_its_countries_by_tests():
    clients = Fleet("mlab:world").clients(MILLION)
    lines = Path(fleet_data.__file__).with_name("mlab.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    tests = np.array([int(row["tests"]) for row in rows])
    assert len(rows) == 238 and tests.sum() == 112945393 + 77079829
    for name, values in (("up", clients.up), ("down", clients.down)):
        quantiles = np.quantile(values / 1e6, LEVELS)
        share = np.zeros(9)
        for row, count in zip(rows, tests, strict=True):  # P(rate <= quantile) in each country
            table = np.maximum([float(row[f"{name}_p{round(100 * p)}"]) for p in LEVELS], 1e-3)
            score = np.interp(np.log(quantiles), np.log(table), norm.ppf(LEVELS))
            below, above = quantiles < table[0], quantiles >= table[-1]
            share += count * np.where(below, 0, np.where(above, 1, norm.cdf(score)))
        assert share / tests.sum() == pytest.approx(LEVELS, rel=0.02)


def test_a_client_depends_on_its_number_alone():
    fleet = Fleet("mlab:world", devices="phones")
    every, some = fleet.clients(np.arange(100)), fleet.clients(np.array([3, 97]))
    other = fleet.clients(np.arange(100), seed=2)
    for name in ("up", "down", "latency", "loss", "factor"):
        assert np.array_equal(getattr(every, name)[[3, 97]], getattr(some, name))
        assert not np.array_equal(getattr(every, name), getattr(other, name))


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_log_normal_links_have_the_stated_median_spread_and_correlation(rho):
    fleet = Fleet("10mbit/50mbit,20ms", sigma=0.7, correlation=rho)
    c = fleet.clients(np.arange(200_000))
    up, down, wait = np.log(c.up / 1e7), np.log(c.down / 5e7), np.log(c.latency / 0.02)
    for values in (up, down, wait):
        assert abs(values.mean()) < 0.01 and values.std() == pytest.approx(0.7, rel=0.01)
    assert np.corrcoef(up, down)[0, 1] == pytest.approx(rho, abs=0.01)
    assert np.corrcoef(up, wait)[0, 1] == pytest.approx(-rho, abs=0.01)


def test_given_links_and_factors_are_dealt_in_turn():
    fleet = Fleet(["1mbit", "2mbit/4mbit,3ms"], devices=[1.0, 2.0, 4.0])
    clients = fleet.clients(np.arange(4))
    assert clients.up.tolist() == [1e6, 2e6, 1e6, 2e6]
    assert clients.down.tolist() == [1e6, 4e6, 1e6, 4e6]
    assert clients.latency.tolist() == [0, 3e-3, 0, 3e-3]
    assert clients.factor.tolist() == [1, 2, 4, 1]


def test_loss_bounds_the_rate_of_a_given_link():
    # Mathis et al.: MSS / RTT sqrt(3 / (2 p)), 1448 bytes, 40 ms, one packet in a hundred
    clients = Fleet("100mbit/1mbit,20ms", loss=0.01).clients(np.arange(2))
    assert clients.up == pytest.approx(8 * 1448 / 0.04 * np.sqrt(150), rel=1e-12)
    assert clients.down.tolist() == [1e6, 1e6]


def test_phones_have_the_published_quantiles():
    factors = Fleet("1mbit", devices="phones").clients(MILLION).factor
    found = np.quantile(factors, LEVELS)
    published = [0.285, 0.348, 0.401, 0.558, 1.0, 1.798, 2.765, 3.251, 9.591]
    assert found == pytest.approx(published, rel=0.02)


def test_scores_are_the_normal_quantiles_of_the_levels():
    assert pytest.approx(norm.ppf(LEVELS), rel=1e-14, abs=1e-15) == fleet_data.SCORES


def test_exp_is_that_of_the_c_library():
    x = np.linspace(-700, 700, 100_001)
    assert exp(x) == pytest.approx(np.exp(x), rel=1e-15)
    assert exp(np.array([0.0]))[0] == 1


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"links": "mlab:XX"}, "fleet.links: 'mlab:XX'"),
        ({"links": "10mbit,shared"}, "fleet.links"),
        ({"links": []}, "fleet.links"),
        ({"links": "fast"}, "fleet.links fast"),
        ({"links": "mlab:US", "sigma": 1.0}, "fleet.sigma and fleet.loss"),
        ({"dropout": 1.0}, "fleet.dropout"),
        ({"availability": 0.0}, "fleet.availability"),
        ({"correlation": 1.5}, "fleet.correlation"),
        ({"devices": [1.0, 0.0]}, "fleet.devices"),
        ({"seconds": -1.0}, "fleet.seconds"),
        ({"deadline": 0.0}, "fleet.deadline"),
        ({"invited": 0}, "fleet.invited"),
    ],
)
def test_what_a_fleet_cannot_be(table, line):
    with pytest.raises(InputError, match=line):
        Fleet(**table)
