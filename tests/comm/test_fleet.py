"""Fleets: drawn clients against the table of Measurement Lab, and against closed forms."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from mpisim.comm import fleet_data
from mpisim.comm.fleet import Fleet

MILLION = np.arange(1_000_000)
LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])


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
