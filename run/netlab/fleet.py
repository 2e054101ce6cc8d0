"""Seconds of hosts whose links differ, measured in the lab and modelled.

Each of 20 cases runs twice: on the links of its table, and on unlimited ones. The model of `mpisim
fleet` computes from the second log what the first should have taken, with the clients that took
part in each of its rounds. TCP's windows are open from the start.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, Evidence, decided, on_seconds, state
from mpisim.analysis.curves import about_seconds
from mpisim.analysis.fleet_rounds import rounds_of
from mpisim.analysis.fleet_seconds import seconds
from mpisim.comm.fleet import Clients, Fleet
from mpisim.comm.links import burst, parse
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log
from mpisim.runs.log.reader import read as read_log

SECONDS = 6.0  # of a case
FEWEST, MOST = 25, 100  # rounds: the end of the last broadcast falls into the log's evaluation
LONGER = 10  # times as many where packets are lost: windows close after the first losses
CLOSE, CLOSER, ENOUGH = 0.15, 0.10, 0.9  # all within the first, nine in ten within the second
SOURCE = "seconds in network namespaces, and the model of `mpisim fleet`"


class Case(NamedTuple):
    """A method on hosts with links of their own.

    loss : share of the packets that each loses
    """

    method: str
    links: tuple[str, ...]
    loss: float = 0.0

    @property
    def name(self) -> str:
        lost = f", {self.loss:.1%} lost" if self.loss else ""
        return f"{self.method}: {' '.join(self.links)}{lost}"

    @property
    def short(self) -> str:
        """Its method, how many hosts, and the range of their links."""
        links = [parse(text) for text in self.links]
        rates = sorted(rate / 1e6 for one in links for rate in (one.up, one.down))
        waits = sorted(1e3 * one.latency for one in links)
        lost = f", {self.loss:.1%} lost" if self.loss else ""
        return (
            f"{self.method}, {len(links)} clients, {_range(rates)} Mbit/s, {_range(waits)} ms{lost}"
        )

    @property
    def fleet(self) -> InLab:
        return InLab(list(self.links), loss=self.loss)


def _range(values: list[float]) -> str:
    low, high = f"{values[0]:g}", f"{values[-1]:g}"
    return low if low == high else f"{low} to {high}"


class InLab(Fleet):
    """A fleet whose links are token buckets: what a full one holds passes at once."""

    def clients(self, which: np.ndarray, seed: int | None = None) -> Clients:
        c = super().clients(which, seed)
        saved = [[burst(rate) / rate for rate in rates] for rates in (c.up, c.down)]
        return dataclasses.replace(c, latency=c.latency - np.mean(saved, axis=0))


def _method(name: str, keys: str = "", compressor: str = "name = 'identity'") -> tuple[str, str]:
    more = f", {keys}" if keys else ""
    return f"method={{ name = '{name}', stepsize = 0.01{more} }}", f"compressor={{ {compressor} }}"


METHODS = {
    "GD": _method("gd"),
    "natural": _method("dcgd", "", "name = 'natural'"),
    "DIANA": _method("diana", "alpha = 0.1", "name = 'randk', k = 0.1"),
    "EF21": _method("ef21", "", "name = 'topk', k = 0.1"),
    "MARINA": _method("marina", "p = 0.2", "name = 'randk', k = 0.1"),
    "PP-MARINA": _method("pp-marina", "p = 0.1, participants = 2", "name = 'randk', k = 0.5"),
    "Bernoulli": _method("dcgd", "", "name = 'bernoulli', p = 0.5"),
    "FedAvg": _method("fedavg", "local_steps = 2, participants = 2"),
}
SLOW = ("1mbit/10mbit,5ms", "2mbit/8mbit,100ms", "5mbit,20ms", "10mbit,1ms")
FAST = ("20mbit,50ms", "50mbit,10ms", "100mbit,2ms", "100mbit,30ms")
CASES = (
    Case("GD", ("1mbit,10ms", "10mbit,1ms")),
    Case("GD", ("2mbit/8mbit,20ms", "5mbit,50ms", "20mbit,1ms")),
    Case("GD", ("100mbit,1ms", "50mbit,5ms")),
    Case("GD", ("20mbit,100ms", "100mbit,10ms", "10mbit,30ms")),
    Case("GD", SLOW + FAST),
    Case("GD", ("5mbit,5ms", "10mbit,5ms"), loss=0.001),
    Case("natural", ("1mbit/5mbit,5ms", "4mbit/20mbit,10ms")),
    Case("natural", ("10mbit,2ms", "3mbit,20ms", "30mbit,60ms", "100mbit,1ms")),
    Case("DIANA", ("1mbit/10mbit,5ms", "20mbit,40ms")),
    Case("DIANA", ("50mbit,10ms", "8mbit,25ms", "100mbit,50ms")),
    Case("DIANA", ("2mbit/20mbit,10ms", "3mbit/30mbit,20ms", "6mbit/60mbit,5ms", "10mbit,1ms")),
    Case("EF21", ("1mbit/4mbit,15ms", "10mbit,80ms")),
    Case("EF21", ("5mbit/50mbit,30ms", "20mbit,3ms", "40mbit,10ms")),
    Case("MARINA", ("2mbit/10mbit,10ms", "10mbit,30ms")),
    Case("MARINA", ("10mbit/100mbit,5ms", "4mbit/40mbit,40ms"), loss=0.001),
    Case("PP-MARINA", ("3mbit,5ms", "3mbit,5ms", "5mbit,10ms", "5mbit,10ms")),
    Case("PP-MARINA", ("4mbit/40mbit,20ms", "5mbit/50mbit,10ms", "6mbit/60mbit,30ms")),
    Case("Bernoulli", ("2mbit/20mbit,10ms", "2mbit/20mbit,20ms", "4mbit/20mbit,5ms")),
    Case("FedAvg", ("4mbit,10ms", "4mbit,10ms", "5mbit,10ms")),
    Case("FedAvg", ("2mbit/20mbit,10ms", "3mbit/20mbit,20ms", "2mbit/20mbit,5ms", "3mbit,1ms")),
)


class Seconds(NamedTuple):
    """Of a case after row 0: measured on its links, and modelled; and the logs of both."""

    case: Case
    measured: float
    modelled: float
    logs: list[Log]

    @property
    def error(self) -> float:
        """Of the model, relative."""
        return self.modelled / self.measured - 1


def size(case: Case) -> tuple[int, int]:
    """d, so that a vector takes 0.13 s on the slowest link, and rounds of `SECONDS` in all.

    `LONGER` ones where packets are lost.
    """
    links = [parse(text) for text in case.links]
    d = int(np.clip(0.13 * min(min(one.up, one.down) for one in links) / 32, 5000, 200_000))
    bits = 32.0 * d
    round_ = max(2 * one.latency + bits / one.up / 3 + bits / one.down for one in links)
    rounds = int(np.clip(SECONDS / round_, FEWEST, MOST))
    return d, rounds * LONGER if case.loss else rounds


def logs_of(folder: Path, number: int) -> tuple[Path, Path]:
    """The logs of a case, counted from 1: on its links, and on unlimited ones."""
    return folder / f"{number:02}-links.h5", folder / f"{number:02}-unlimited.h5"


def read(folder: Path) -> list[Seconds]:
    """The cases that were measured; `InputError` where none was."""
    cases = []
    for number, case in enumerate(CASES, 1):
        paths = logs_of(folder, number)
        if all(path.is_file() for path in paths):
            logs = [read_log(path) for path in paths]
            measured, unlimited = logs
            modelled = float(np.ptp(seconds(rounds_of(unlimited, case.fleet), case.fleet).seconds))
            cases.append(Seconds(case, float(np.ptp(measured.column("seconds"))), modelled, logs))
    if not cases:
        raise InputError(
            f"{folder}: nothing measured; `mpisim study run/netlab fleet` does, as root"
        )
    return cases


def draw(cases: list[Seconds]) -> Any:
    """The error of the model in each case, and the seconds in words."""
    figure, grid = panels.grid(1, 1, (7.5, 0.23 * len(cases) + 0.6))
    panel, places = grid[0, 0], -np.arange(len(cases))
    for width, shade in ((CLOSE, 0.12), (CLOSER, 0.12)):
        panel.axvspan(-100 * width, 100 * width, color=style.GREY, alpha=shade, linewidth=0)
    panel.plot([100 * one.error for one in cases], places, "o", color=style.COLOURS[0])
    shown = [f"{one.case.short}, {one.measured:.1f} s" for one in cases]
    panel.set_yticks(places, shown)
    panel.set_xlim(-20, 20)
    panel.set_xlabel("error of the modelled seconds, per cent of those measured")
    panels.caption(figure, about_seconds([log for one in cases for log in one.logs]), 1)
    return figure


def claims(cases: list[Seconds]) -> Iterator[Claim]:
    """All are close, and nine in ten closer."""
    logs = [log for one in cases for log in one.logs]
    errors = []
    for one in cases:
        text = f"{one.modelled:.2f} s for {one.measured:.2f} s, {one.error:+.1%}"
        numbers = {"measured": one.measured, "modelled": one.modelled, "error": one.error}
        errors.append(Evidence(one.case.name, text, decided(abs(one.error) <= CLOSE), numbers))
    text = f"the model is within {CLOSE:.0%} of what was measured"
    yield on_seconds(state(text, "", SOURCE, errors), logs)
    closer = sum(abs(one.error) <= CLOSER for one in cases)
    good = decided(closer >= ENOUGH * len(cases))
    counted = Evidence("", f"{closer} of {len(cases)} are", good, {"closer": closer})
    text = f"it is within {CLOSER:.0%} in nine of ten cases"
    yield on_seconds(state(text, "", SOURCE, [counted]), logs)
