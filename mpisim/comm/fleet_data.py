"""Measured links by country, and how long published phones take to train: quantiles."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
from numba import njit

from mpisim.core.numerics.functions import exp, log

COLUMNS = ("down", "up", "rtt", "loss")
LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
_SCORES = [
    0.6744897501960817,
    1.2815515655446008,
    1.6448536269514715,
    2.3263478740408408,
]  # of 0.75, 0.9, ...
SCORES = np.array([-score for score in _SCORES[::-1]] + [0.0] + _SCORES)  # normal quantiles
LEAST = 1e-3  # Mbit/s and ms: the table has a rate of 0, from 72 tests
# Seconds to train ResNet on 978 phones, over their median: FLHetBench (Zhang et al., CVPR 2024),
# data/training_latency.json. Level 0.01 is the fastest.
PHONES = np.array([0.285, 0.348, 0.401, 0.558, 1.0, 1.798, 2.765, 3.251, 9.591])


class Table:
    """The quantiles of Measurement Lab, in mlab.csv beside this file.

    countries : their codes; weights : cumulative shares of the tests, (countries,)
    quantiles : {column: (countries, 9)}; the logarithm of Mbit/s and ms, and shares lost
    """

    def __init__(self) -> None:
        text = Path(__file__).with_name("mlab.csv").read_text()
        rows = list(csv.DictReader(line for line in text.splitlines() if line[0] != "#"))
        self.countries = [row["country"] for row in rows]
        tests = np.cumsum([int(row["tests"]) for row in rows])
        self.weights = tests / tests[-1]
        self.quantiles = {}
        for name in COLUMNS:
            levels = [f"{name}_p{level * 100:.0f}" for level in LEVELS]
            values = np.array([[float(row[level]) for level in levels] for row in rows])
            self.quantiles[name] = values if name == "loss" else log(np.maximum(values, LEAST))

    def of(self, name: str, country: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Clients' values of a column, shape (clients,): Mbit/s, ms, or a share.

        country : numbers of their countries; score : standard normal numbers, low for a poor link
        """
        values = interpolated(self.quantiles[name], country, score)
        return values if name == "loss" else exp(values)


@njit(cache=True, error_model="numpy")
def interpolated(quantiles, rows, score):
    """Row ``rows``[i] of the quantiles (countries, 9) at score i, linear in the score between them.

    Constant beyond them; shape (clients,).
    """
    out, last = np.empty(score.size), SCORES.size - 1
    for i in range(score.size):
        z, right = min(max(score[i], SCORES[0]), SCORES[last]), 1
        while right < last and SCORES[right] < z:
            right += 1
        share = (z - SCORES[right - 1]) / (SCORES[right] - SCORES[right - 1])
        low, high = quantiles[rows[i], right - 1], quantiles[rows[i], right]
        out[i] = low + share * (high - low)
    return out


def phones(score: np.ndarray) -> np.ndarray:
    """Seconds of phones over those of the median one, shape (clients,)."""
    return exp(interpolated(log(PHONES)[None], np.zeros(len(score), np.int64), score))


@cache
def table() -> Table:
    """The one table, read when it is first needed."""
    return Table()
