"""Seconds of hosts whose links differ, measured in the lab and modelled.

`python -m tools.netlab.fleet` runs it, as root on Linux.

Each of 20 cases runs twice: on the links of its table, and on unlimited ones. The model of `mpisim
fleet` computes from the second log what the first should have taken. It draws who takes part in a
round, so its seconds are the mean of several draws. TCP's windows are open from the start.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path

import numpy as np

from mpisim.analysis.claims import SUFFIX, Claim, Evidence, Verdict, decided, state, table, write
from mpisim.analysis.fleet.seconds import FleetSeconds
from mpisim.comm.fleet import Clients, Fleet
from mpisim.comm.links import Links, burst, parse
from mpisim.core.errors import MpisimError
from mpisim.runs.log.reader import Log
from tools.netlab.check import Experiment, run
from tools.netlab.job import stoppable
from tools.netlab.lab import Lab

SECONDS = 6.0  # of a case
FEWEST, MOST = 25, 100  # rounds: the end of the last broadcast falls into the log's evaluation
DRAWS = 20
CLOSE, CLOSER, ENOUGH = 0.15, 0.10, 0.9  # all within the first, nine in ten within the second
SOURCE = "seconds in network namespaces, and the model of `mpisim fleet`"


@dataclasses.dataclass(frozen=True)
class Case:
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
    def fleet(self) -> InLab:
        return InLab(list(self.links), loss=self.loss)


class InLab(Fleet):
    """A fleet whose links are token buckets: what a full one holds passes at once."""

    def clients(self, which: np.ndarray, seed: int | None = None) -> Clients:
        c = super().clients(which, seed)
        saved = [[burst(rate) / rate for rate in rates] for rates in (c.up, c.down)]
        return dataclasses.replace(c, latency=c.latency - np.mean(saved, axis=0))


def _method(name: str, keys: str = "", compressor: str = "name = 'identity'") -> tuple[str, str]:
    more = f", {keys}" if keys else ""
    return (
        f"method={{ name = '{name}', stepsize = 0.01{more} }}",
        f"compressor={{ {compressor} }}",
    )


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
CASES = (
    Case("GD", ("1mbit,10ms", "10mbit,1ms")),
    Case("GD", ("2mbit/8mbit,20ms", "5mbit,50ms", "20mbit,1ms")),
    Case("GD", ("100mbit,1ms", "50mbit,5ms")),
    Case("GD", ("20mbit,100ms", "100mbit,10ms", "10mbit,30ms")),
    Case("GD", ("5mbit/20mbit,5ms",) * 8),
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


def experiment(case: Case) -> Experiment:
    """With vectors that take 0.13 s on the slowest link, and rounds of `SECONDS`."""
    links = [parse(text) for text in case.links]
    d = int(np.clip(0.13 * min(min(one.up, one.down) for one in links) / 32, 5000, 200_000))
    bits = 32.0 * d
    round_ = max(2 * one.latency + bits / one.up / 3 + bits / one.down for one in links)
    rounds = int(np.clip(SECONDS / round_, FEWEST, MOST))
    problem = f"problem={{ name = 'quadratic', dimension = {d}, workers = {len(links)} }}"
    return Experiment(case.name, rounds, (problem, *METHODS[case.method]))


def logs_of(case: Case) -> tuple[Log, Log]:
    """On the case's links, and on unlimited ones."""
    own, hosts = experiment(case), len(case.links) + 1
    links = [parse(text) for text in case.links]
    found = []
    for given, losses in ((links, [case.loss] * len(links)), ([Links()] * len(links), ())):
        with Lab(hosts, links=given, losses=losses) as lab:
            found.append(run(lab, own, own.rounds)[0])
    return found[0], found[1]


def seconds_of(case: Case, measured: Log, unlimited: Log) -> tuple[float, float]:
    """Measured and modelled, after row 0."""
    axes = [FleetSeconds("seconds", True, fleet=case.fleet, seed=seed) for seed in range(DRAWS)]
    modelled = [np.ptp(axis.values(unlimited)) for axis in axes]
    return float(np.ptp(measured.column("seconds"))), float(np.mean(modelled))


def evidence(case: Case) -> Evidence:
    measured, modelled = seconds_of(case, *logs_of(case))
    error = modelled / measured - 1
    numbers = {"measured": measured, "modelled": modelled, "error": error}
    shown = f"{modelled:.2f} s for {measured:.2f} s, {error:+.1%}"
    return Evidence(case.name, shown, decided(abs(error) <= CLOSE), numbers)


def claims(found: list[Evidence]) -> list[Claim]:
    """All are close, and nine in ten closer."""
    errors = np.array([one.numbers["error"] for one in found])
    closer = int((np.abs(errors) <= CLOSER).sum())
    count = f"{closer} of {len(found)} are"
    one = Evidence("", count, decided(closer >= ENOUGH * len(found)), {"closer": closer})
    return [
        state(f"the model is within {CLOSE:.0%} of what was measured", "", SOURCE, found),
        state(f"it is within {CLOSER:.0%} in nine of ten cases", "", SOURCE, [one]),
    ]


def main(argv: list[str] | None = None) -> int:
    """Run cases, print and write the claims; the exit code is 1 if one does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.netlab.fleet")
    parser.add_argument("cases", metavar="N", type=int, nargs="*", help="from 1 on (default: all)")
    chosen = parser.parse_args(argv).cases or range(1, len(CASES) + 1)
    found = []
    try:
        with stoppable():
            for number in chosen:
                found.append(evidence(CASES[number - 1]))
                print(f"{number:2} {found[-1].where}: {found[-1].measured}", flush=True)
        made = claims(found)
        path = write(Path("figures") / f"netlab-fleet{SUFFIX}", made)
    except MpisimError as error:
        print(f"mpisim: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    print(f"{table('netlab-fleet', made)}\n\n{path}\n{os.cpu_count()} cores")
    return int(not all(claim.verdict is Verdict.HOLDS for claim in made))


if __name__ == "__main__":
    sys.exit(main())
