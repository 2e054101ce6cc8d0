"""`make netlab-check`: compares the kernel's counts of bytes on the network with the ledger's.

Each case runs twice, the second time with more rounds. The difference between the two runs' counts
is that of these rounds, without the start of MPI, evaluation and the end. From the bytes that left
(or reached) a worker host's interface these are subtracted:

* the headers: Ethernet 14, IP 20, TCP 20 and its time stamps 12, for every packet that the kernel
  counted, acknowledgements among them;
* MPI's envelopes: 22 bytes of every message (8 of Open MPI's TCP transport, 14 for matching).

The rest must be the ledger's payload and framing.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mpisim.analysis.claims import SUFFIX, Claim, Evidence, Verdict, decided, state, table, write
from mpisim.analysis.link_model import ENVELOPE, HEADERS, Links
from mpisim.analysis.modelled import traffic
from mpisim.core.errors import MpisimError
from mpisim.runs.log.reader import Log, read
from tools.netlab.job import mpirun, stoppable
from tools.netlab.lab import Counters, Lab

HOSTS = 3  # the server and two that hold the workers
SHAPED = Links(1e8, 1e8, shared=True)
TOLERANCE = 0.05
FEW = 10  # rounds of the first run
SOURCE = f"what left and reached the hosts' interfaces at {SHAPED}, by the kernel"


@dataclasses.dataclass(frozen=True)
class Experiment:
    """An experiment, its rounds in the second run, and the MPI messages a host sends in a round."""

    name: str
    rounds: int
    settings: tuple[str, ...]
    messages_up: int = 1


def _quadratic(d: int, method: str, compressor: str) -> tuple[str, ...]:
    return (
        f"problem={{ name = 'quadratic', dimension = {d}, noise = 0.1 }}",
        f"method={{ name = '{method}', stepsize = 0.01 }}",
        f"compressor={{ name = '{compressor}' }}",
    )


CASES = (
    Experiment("GD, d = 2500", 410, _quadratic(2500, "gd", "identity")),
    Experiment("GD, d = 100,000", 30, _quadratic(100_000, "gd", "identity")),
    Experiment("DCGD, natural compression, d = 20,000", 110, _quadratic(20_000, "dcgd", "natural")),
    Experiment(
        "DIANA, QSGD, Elias code, 400 workers a host",
        310,
        (
            "problem={ name = 'logistic', data = 'sample', workers = 800 }",
            "method={ name = 'diana', stepsize = 0.1, alpha = 0.1 }",
            "compressor={ name = 'qsgd', s = 11 }",
        ),
        messages_up=2,  # lengths go ahead
    ),
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
    own = log.workers["bits_up"] + log.column("framing_bits_up")[-1] / log.n
    ranks = np.split(own, np.cumsum(sent.workers)[:-1])
    return np.array([part.sum() for part in ranks]) / 8, float(sent.bits_down[-1]) / log.n / 8


def measure(lab: Lab, case: Experiment) -> dict[str, Count]:
    """{what: Count} for each worker host, up and down, over the second run's further rounds."""
    few, many = (run(lab, case, rounds) for rounds in (FEW, case.rounds))
    up, down, kernel = many[0] - few[0], many[1] - few[1], many[2] - few[2]
    rounds, found = case.rounds - FEW, {}
    for host, (sent, counters) in enumerate(zip(up, kernel.tolist(), strict=True), 1):
        seen, messages = Counters(*counters), case.messages_up * rounds
        found[f"host {host} sends"] = Count(sent, seen.tx_bytes, seen.tx_packets, messages)
        found[f"host {host} receives"] = Count(down, seen.rx_bytes, seen.rx_packets, rounds)
    return found


def run(lab: Lab, case: Experiment, rounds: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Run a case across the lab; the log has rows for round 0 and the last round only.

    Returns the ledger's bytes from each worker host, shape (hosts,), and to each of them, and how
    each worker host's `Counters` grew, shape (hosts, 4).
    """
    log, hosts = lab.folder / "check.h5", range(1, lab.hosts)
    settings = (*case.settings, f"run.rounds={rounds}", "run.log_every=1000000")
    sets = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "mpisim", "run", *sets, "--set", "run.layout=dedicated"]
    before = np.array([lab.counters(host) for host in hosts])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    job = mpirun(lab, [*command, "--out", str(log), "--force"], **quiet)
    if job.returncode != 0:
        raise MpisimError(f"netlab-check: {case.name}: {job.stderr.strip()}")
    grown = np.array([lab.counters(host) for host in hosts]) - before
    up, down = ledger_bytes(read(log))
    return up[1:], down, grown


def claims_of(case: Experiment, counts: dict[str, Count]) -> Iterator[Claim]:
    """One claim for each host and direction."""
    rounds = case.rounds - FEW
    for what, count in counts.items():
        excess = count.ratio - 1
        found = Evidence(
            "",
            f"{count.ledger / rounds:.0f} bytes a round, {excess:+.2%}; with headers of"
            f" {count.packets / rounds:.1f} packets and envelopes {count.kernel / rounds:.0f}",
            decided(abs(excess) <= TOLERANCE),
            dataclasses.asdict(count) | {"rounds": rounds, "ratio": count.ratio},
        )
        yield state(f"{case.name}: {what} what the ledger says", "", SOURCE, [found])


def main() -> int:
    """Run all cases, print and write the claims; the exit code is 1 if one does not hold."""
    claims: list[Claim] = []
    try:
        with stoppable(), Lab(HOSTS, SHAPED) as lab:
            for case in CASES:
                print(f"{case.name} ...", flush=True)
                claims += claims_of(case, measure(lab, case))
        path = write(Path("figures") / f"netlab-check{SUFFIX}", claims)
    except MpisimError as error:
        print(f"mpisim: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    print(f"{table('netlab-check', claims)}\n\n{path}")
    return int(not all(claim.verdict is Verdict.HOLDS for claim in claims))


if __name__ == "__main__":
    sys.exit(main())
