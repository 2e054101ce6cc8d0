"""A fleet: the link, the speed and the presence of every client. The table ``[fleet]``.

Links by country as they were measured, and how long published phones take to train: quantiles.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from math import inf, sqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numba import njit

from mpisim.comm.links import SEGMENT, Links, parse
from mpisim.core.errors import InputError, suggestion
from mpisim.core.numerics import philox
from mpisim.core.numerics.functions import exp, log, normal_quantiles
from mpisim.core.rng import purpose_key
from mpisim.core.schema import build, require

DATA_FILES = ("mlab.csv",)
MEASURED, WORLD = "mlab:", "world"
WORDS = 7  # of a client: its country, what its numbers share, down, up, rtt, loss, its device
PURPOSE = "fleet"
COLUMNS = ("down", "up", "rtt", "loss")
LEVELS = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
# Of normal quantiles at 0.75, 0.9, 0.95 and 0.99.
_SCORES = [0.6744897501960817, 1.2815515655446008, 1.6448536269514715, 2.3263478740408408]
SCORES = np.array([-score for score in _SCORES[::-1]] + [0.0] + _SCORES)  # normal quantiles
LEAST = 1e-3  # Mbit/s and ms: the table has a rate of 0, from 72 tests
# Seconds to train ResNet on 978 phones, over their median: FLHetBench (Zhang et al., CVPR 2024),
# data/training_latency.json. Level 0.01 is the fastest.
PHONES = np.array([0.285, 0.348, 0.401, 0.558, 1.0, 1.798, 2.765, 3.251, 9.591])


@dataclasses.dataclass(frozen=True)
class Clients:
    """Some clients of a fleet: arrays of shape (clients,).

    up, down : bits per second; latency : seconds, one way; loss : share of lost packets
    factor : seconds of its computing over those of this machine
    """

    up: np.ndarray
    down: np.ndarray
    latency: np.ndarray
    loss: np.ndarray
    factor: np.ndarray

    def of(self, which: np.ndarray) -> Clients:
        """Some of them, by their places."""
        arrays = (getattr(self, field.name)[which] for field in dataclasses.fields(self))
        return Clients(*arrays)


@dataclasses.dataclass(frozen=True)
class Fleet:
    """The ``[fleet]`` table.

    links : "mlab:US", links as Measurement Lab measured them in a country; "mlab:world", in all of
        them by their tests; or a link such as "10mbit/50mbit,20ms", or a list of links, which
        clients get in turn
    sigma : links that are given, not measured, differ: each rate and latency is multiplied by
        e^{sigma z}, z normal
    loss : share of the packets that given links lose; it bounds their rates (Mathis et al., 1997)
    correlation : of a client's download, upload, latency and loss, as normal scores, 0 to 1
    devices : "equal"; "phones", seconds of 978 phones over their median (FLHetBench, CVPR 2024); or
        a list of factors, which clients get in turn
    seconds : of a client's computing before its factor: "measured", as the log has them, with
        workers of a rank in turn; "sample", a client alone, by the log's seconds of a sample; or a
        number, the seconds of a sample
    availability : the chance that a client is there in a round
    dropout : the chance that one that is there drops out of a round, and sends nothing
    deadline : seconds after which a round goes on without those who are late
    invited : how many clients a round invites where r of them take part: the fastest r do
    simulate : rounds run on the event clock, as fedavg, fedprox, pp-marina, diana and dasha can:
        who drops out of a round or is late sends nothing in it
    seed : of the fleet
    """

    links: str | list[str] = MEASURED + WORLD
    sigma: float = 0.0
    loss: float = 0.0
    correlation: float = 0.5
    devices: Literal["equal", "phones"] | list[float] = "equal"
    seconds: Literal["measured", "sample"] | float = "measured"
    availability: float = 1.0
    dropout: float = 0.0
    deadline: float | None = None
    invited: int | None = None
    simulate: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        require(0 <= self.loss < 1, "fleet.loss", self.loss, "a number in [0, 1)")
        require(0 <= self.dropout < 1, "fleet.dropout", self.dropout, "a number in [0, 1)")
        require(0 <= self.sigma < 10, "fleet.sigma", self.sigma, "a number in [0, 10)")
        rho, available = self.correlation, self.availability
        require(0 <= rho <= 1, "fleet.correlation", rho, "a number in [0, 1]")
        require(0 < available <= 1, "fleet.availability", available, "a number in (0, 1]")
        if not isinstance(self.devices, str):
            good = bool(self.devices) and all(0 < factor < inf for factor in self.devices)
            require(good, "fleet.devices", self.devices, "a list of finite numbers > 0")
        if not isinstance(self.seconds, str):
            require(0 <= self.seconds < inf, "fleet.seconds", self.seconds, "a finite number >= 0")
        limit, invited = self.deadline, self.invited
        require(limit is None or 0 < limit < inf, "fleet.deadline", limit, "a finite number > 0")
        require(invited is None or invited >= 1, "fleet.invited", invited, "an integer >= 1")
        require(0 <= self.seed < 2**63, "fleet.seed", self.seed, "an integer from 0 to 2^63 - 1")
        if self.country is None:
            self._given()
        elif self.sigma or self.loss:
            raise InputError(f"fleet.sigma and fleet.loss: are not allowed with {self.links!r}")

    @property
    def country(self) -> str | None:
        """The country that was measured, or "world"; None for links that are given."""
        if not isinstance(self.links, str) or not self.links.lower().startswith(MEASURED):
            return None
        code, known = self.links[len(MEASURED) :], [WORLD, *measured().countries]
        code = code.lower() if code.lower() == WORLD else code.upper()
        if code not in known:
            hint = suggestion(code, known)
            allowed = "world or a country's two letters, such as mlab:US"
            raise InputError(f"fleet.links: {self.links!r}: {hint}it must be {allowed}")
        return code

    def __str__(self) -> str:
        """What figures call it."""
        links = self.links if isinstance(self.links, str) else " ".join(self.links)
        changed = [
            f"{field.name} {getattr(self, field.name)}"
            for field in dataclasses.fields(self)
            if field.name not in ("links", "seed") and getattr(self, field.name) != field.default
        ]
        return ", ".join([links, *changed])

    def clients(self, which: np.ndarray, seed: int | None = None) -> Clients:
        """The clients with these numbers, ascending, of this seed's fleet.

        A client is a function of (seed, number) alone: no array has the size of the fleet.
        """
        key = purpose_key(PURPOSE)
        words = philox.words_of(self.seed if seed is None else seed, key, 0, 0, which, WORDS)
        uniforms = ((np.ascontiguousarray(words.T) >> np.uint64(11)) + 0.5) * 2.0**-53
        common, *scores = normal_quantiles(uniforms[1:-1])
        rho = self.correlation
        link = [sqrt(rho) * common + sqrt(1 - rho) * score for score in scores]
        return Clients(*self._links(which, uniforms[0], link), self._factors(which, uniforms[-1]))

    def _links(
        self, which: np.ndarray, u: np.ndarray, z: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Up, down, latency and loss; u : uniforms (clients,), z : four arrays of scores."""
        if (code := self.country) is not None:
            table = measured()
            if code == WORLD:
                country = np.minimum(np.searchsorted(table.weights, u), len(table.weights) - 1)
            else:
                country = np.full(len(u), table.countries.index(code))
            down, up, rtt, loss = (table.of(name, country, z[i]) for i, name in enumerate(COLUMNS))
            return 1e6 * up, 1e6 * down, rtt / 2e3, loss
        given = np.array([(link.up, link.down, link.latency) for link in self._given()])
        up, down, latency = np.take(given.T, which % len(given), axis=1)
        if self.sigma:  # a poor link has low rates and a high latency
            down, up = down * exp(self.sigma * z[0]), up * exp(self.sigma * z[1])
            latency = latency * exp(-self.sigma * z[2])
        if self.loss:
            with np.errstate(divide="ignore"):
                most = 8 * SEGMENT / (2 * latency) * sqrt(1.5 / self.loss)
            up, down = np.minimum(up, most), np.minimum(down, most)
        return up, down, latency, np.full(len(which), self.loss)

    def _given(self) -> list[Links]:
        """The links of the table, where they are not measured; `InputError` for other texts."""
        texts = [self.links] if isinstance(self.links, str) else self.links
        links = [parse(text, "fleet.links") for text in texts]
        require(len(links) > 0, "fleet.links", self.links, "a link, a list of links, or mlab:US")
        for text, link in zip(texts, links, strict=True):
            plain = not (link.shared or link.ranks or link.bucket)
            require(plain, "fleet.links", text, "RATE[/RATE][,LATENCY]: a client's own link")
        return links

    def _factors(self, which: np.ndarray, u: np.ndarray) -> np.ndarray:
        if self.devices == "equal":
            return np.ones(len(which))
        if self.devices == "phones":
            return exp(interpolated(log(PHONES)[None], np.zeros_like(which), normal_quantiles(u)))
        return np.asarray(self.devices, float)[which % len(self.devices)]


def built_fleets(named: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]) -> list[Fleet]:
    """One fleet or several, each as its links ("mlab:US") or as a table ``[fleet]``."""
    several = [named] if isinstance(named, str | Mapping) else named
    tables = [{"links": one} if isinstance(one, str) else dict(one) for one in several]
    return [build(Fleet, table, "fleet") for table in tables]


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
        for j in range(1, last):  # no branch, which would be mispredicted
            right += SCORES[j] < z
        share = (z - SCORES[right - 1]) / (SCORES[right] - SCORES[right - 1])
        low, high = quantiles[rows[i], right - 1], quantiles[rows[i], right]
        out[i] = low + share * (high - low)
    return out


measured = cache(Table)  # the one table, read when it is first needed
