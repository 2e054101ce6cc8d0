"""`make netlab-check`: compares the kernel's counts of bytes on the network with the ledger's.

Each case runs twice, the second time with more rounds. The difference between the two runs' counts
is that of these rounds, without the start of MPI, evaluation and the end. From the bytes that left
(or reached) a worker host's interface these are subtracted:

* the headers: Ethernet 14, IP 20, TCP 20 and its time stamps 12, for every packet that the kernel
  counted, acknowledgements among them;
* MPI's envelopes: 22 bytes of every message (8 of Open MPI's TCP transport, 14 for matching).

The rest must be the ledger's payload and framing.

Of methods in which few workers send, the seconds are checked: on a link that all share, the model
must be close to the measured ones. Idle workers acknowledge broadcasts in packets of their own,
which the model leaves out. So the time that these take, by the kernel's count, is subtracted.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mpisim.analysis.claims import SUFFIX, Claim, Evidence, Verdict, decided, state, table, write
from mpisim.analysis.link_model import ModelledSeconds, traffic
from mpisim.comm.links import ENVELOPE, HEADERS, Links
from mpisim.core.errors import MpisimError
from mpisim.runs.log.reader import Log, read
from tools.netlab.job import mpirun, stoppable
from tools.netlab.lab import Counters, Lab

HOSTS = 3  # the server and two that hold the workers
SHAPED = Links(1e8, 1e8, shared=True)
TOLERANCE = 0.05
FEW = 10  # rounds of the first run
SOURCE = f"what left and reached the hosts' interfaces at {SHAPED}, by the kernel"
WORKERS = 4  # each on a host of its own, where few of them send
SLOW = Links(up=2e5, shared=True, ranks=True, bucket=True)
CLOSE = 0.15
TIMED = f"seconds at {SLOW} without the idle hosts' acknowledgements, and the network model"


class Experiment(NamedTuple):
    """An experiment, its rounds in the second run, and the MPI messages a host sends in a round."""

    name: str
    rounds: int
    settings: tuple[str, ...]
    messages_up: int = 1


def _quadratic(d: int, more: str, method: str, compressor: str) -> tuple[str, ...]:
    """Settings from keys of a problem, besides d, of a method and of a compressor."""
    problem = f"problem={{ name = 'quadratic', dimension = {d}, {more} }}"
    return problem, f"method={{ {method}, stepsize = 0.01 }}", f"compressor={{ {compressor} }}"


def _noisy(name: str, rounds: int, d: int, method: str, compressor: str) -> Experiment:
    """With the names of a method and a compressor."""
    names = f"name = '{method}'", f"name = '{compressor}'"
    return Experiment(name, rounds, _quadratic(d, "noise = 0.1", *names))


QSGD = (
    "problem={ name = 'logistic', data = 'sample', workers = 800 }",
    "method={ name = 'diana', stepsize = 0.1, alpha = 0.1 }",
    "compressor={ name = 'qsgd', s = 11 }",
)
CASES = (
    _noisy("GD, d = 2500", 410, 2500, "gd", "identity"),
    _noisy("GD, d = 100,000", 30, 100_000, "gd", "identity"),
    _noisy("DCGD, natural compression, d = 20,000", 110, 20_000, "dcgd", "natural"),
    # lengths go ahead
    Experiment("DIANA, QSGD, Elias code, 400 workers a host", 310, QSGD, messages_up=2),
)


def _idle(name: str, d: int, method: str, compressor: str) -> Experiment:
    """Of keys of a method and a compressor, with the few senders in its name."""
    return Experiment(name, 310, _quadratic(d, f"workers = {WORKERS}", method, compressor))


PP = "name = 'pp-marina', p = 1e-9, participants = 2"
IDLE = (
    _idle(f"PP-MARINA, 2 of {WORKERS} clients", 5, PP, "name = 'randk', k = 2"),
    _idle("DCGD, Bernoulli", 5, "name = 'dcgd'", "name = 'bernoulli', p = 0.4"),
    _idle(f"DCGD, PermK, d = 3, n = {WORKERS}", 3, "name = 'dcgd'", "name = 'permk'"),
)


@dataclasses.dataclass(frozen=True)
class Count:
    """Bytes of some rounds in one direction between a host and the network.

    ledger : payload and framing
    kernel, packets : bytes, and the packets in which they came
    messages : of MPI
    """

    ledger: float
    kernel: int
    packets: int
    messages: int

    @property
    def ratio(self) -> float:
        """The kernel's bytes without headers and envelopes, over the ledger's."""
        known = HEADERS * self.packets + ENVELOPE * self.messages
        return (self.kernel - known) / self.ledger


def ledger_bytes(log: Log) -> tuple[np.ndarray, float]:
    """Bytes up of each rank, shape (ranks,), and down to each of them, in a whole run.

    Framing is the same for all workers up to their padding; one copy of a broadcast goes to a host.
    """
    sent = traffic(log)
    sums = log.workers["bits_up"] + log.column("framing_bits_up")[-1] / log.n
    ranks = np.split(sums, np.cumsum(sent.workers)[:-1])
    return np.array([part.sum() for part in ranks]) / 8, float(sent.bits_down[-1]) / log.n / 8


def measure(lab: Lab, case: Experiment) -> dict[str, Count]:
    """{what: Count} for each worker host, up and down, over the second run's further rounds."""
    (few, before), (many, after) = (run(lab, case, rounds) for rounds in (FEW, case.rounds))
    (up, down), (up_few, down_few) = ledger_bytes(many), ledger_bytes(few)
    up, down, kernel = (up - up_few)[1:], down - down_few, after - before
    rounds, counts = case.rounds - FEW, {}
    for host, (sent, counters) in enumerate(zip(up, kernel.tolist(), strict=True), 1):
        seen, messages = Counters(*counters), case.messages_up * rounds
        counts[f"host {host} sends"] = Count(sent, seen.tx_bytes, seen.tx_packets, messages)
        counts[f"host {host} receives"] = Count(down, seen.rx_bytes, seen.rx_packets, rounds)
    return counts


def run(
    lab: Lab, case: Experiment, rounds: int, log_every: int = 1_000_000
) -> tuple[Log, np.ndarray]:
    """Run a case across the lab; the log has rows for round 0 and the last round, unless given.

    Returns the log, and how each worker host's `Counters` grew, shape (hosts, 4).
    """
    log, hosts = lab.folder / "check.h5", range(1, lab.hosts)
    settings = (*case.settings, f"run.rounds={rounds}", f"run.log_every={log_every}")
    sets = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "mpisim", "run", *sets, "--set", "run.layout=dedicated"]
    before = np.array([lab.counters(host) for host in hosts])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    job = mpirun(lab, [*command, "--out", str(log), "--force"], **quiet)
    if job.returncode != 0:
        raise MpisimError(f"netlab-check: {case.name}: {job.stderr.strip()}")
    return read(log), np.array([lab.counters(host) for host in hosts]) - before


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of the rounds between two runs: measured, of acknowledgements, and by the model."""

    measured: float
    acknowledging: float
    modelled: float

    @property
    def error(self) -> float:
        """Of the model, relative."""
        return self.modelled / (self.measured - self.acknowledging) - 1


def timing(unlimited: tuple[Log, Log], slow: tuple[Log, Log], packets: int) -> Timing:
    """Of logs of a few rounds and of many, on unlimited links and at `SLOW`.

    packets : that left the worker hosts in the further rounds at `SLOW`, each in a message of its
        own or without any
    """
    axis = ModelledSeconds("seconds", True, links=SLOW)
    few, many = (float(axis.values(log)[-1]) for log in unlimited)
    before, after = (float(log.column("seconds")[-1]) for log in slow)
    sent_few, sent_many = (int(log.columns["messages_up"][-1]) for log in slow)
    alone = packets - (sent_many - sent_few)
    return Timing(after - before, 8 * HEADERS * alone / SLOW.up, many - few)


def timings() -> Iterator[Claim]:
    """A claim for each case in `IDLE`."""
    pairs: list[list[list[tuple[Log, np.ndarray]]]] = []
    for links in (Links(), SLOW):
        with Lab(WORKERS + 1, links) as lab:
            pairs.append([])
            for case in IDLE:
                print(f"{case.name}, {links} ...", flush=True)
                pairs[-1].append([run(lab, case, rounds) for rounds in (FEW, case.rounds)])
    for case, unlimited, slow in zip(IDLE, *pairs, strict=True):
        (few, before), (many, after) = slow
        packets = int((after - before)[:, Counters._fields.index("tx_packets")].sum())
        one = timing((unlimited[0][0], unlimited[1][0]), (few, many), packets)
        yield timed(case, one)


def timed(case: Experiment, one: Timing) -> Claim:
    """Whether the model is close to the measured seconds."""
    measured = f"{one.modelled:.2f} s for {one.measured:.2f} - {one.acknowledging:.2f} s"
    numbers = dataclasses.asdict(one) | {"rounds": case.rounds - FEW, "error": one.error}
    close = decided(abs(one.error) <= CLOSE)
    evidence = Evidence("", f"{measured}, {one.error:+.1%}", close, numbers)
    return state(f"{case.name}: the model is within {CLOSE:.0%}", "", TIMED, [evidence])


def claims_of(case: Experiment, counts: dict[str, Count]) -> Iterator[Claim]:
    """One claim for each host and direction."""
    rounds = case.rounds - FEW
    for what, count in counts.items():
        excess = count.ratio - 1
        measured = (
            f"{count.ledger / rounds:.0f} bytes a round, {excess:+.2%}; with headers of"
            f" {count.packets / rounds:.1f} packets and envelopes {count.kernel / rounds:.0f}"
        )
        numbers = dataclasses.asdict(count) | {"rounds": rounds, "ratio": count.ratio}
        evidence = Evidence("", measured, decided(abs(excess) <= TOLERANCE), numbers)
        yield state(f"{case.name}: {what} what the ledger says", "", SOURCE, [evidence])


def main() -> int:
    """Run all cases, print and write the claims; the exit code is 1 if one does not hold."""
    claims: list[Claim] = []
    try:
        with stoppable():
            with Lab(HOSTS, SHAPED) as lab:
                for case in CASES:
                    print(f"{case.name} ...", flush=True)
                    claims += claims_of(case, measure(lab, case))
            claims += timings()
        path = write(Path("figures") / f"netlab-check{SUFFIX}", claims)
    except MpisimError as error:
        print(f"mpisim: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    print(f"{table('netlab-check', claims)}\n\n{path}")
    return int(not all(claim.verdict is Verdict.HOLDS for claim in claims))


if __name__ == "__main__":
    sys.exit(main())
