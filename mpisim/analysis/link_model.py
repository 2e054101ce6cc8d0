"""Models how long the bits of a run would take on links that the run did not have.

The modelled seconds are the measured ones, from one machine or from a network much faster than the
model's, plus the time on the links. A round is one gather, from the workers to the server, and one
broadcast back. Each takes the latency, then the time in which its bytes pass the slowest link:

    gather     latency + (bytes of the busiest host) / up      all bytes / up where shared
    broadcast  latency + (bytes of one copy) / down            all copies / down where shared

A host is a worker, or a rank with all its workers (`ranks`). In the second case each host receives
one copy of a broadcast, and the server's own workers use no link. Bytes are payload, framing, the
envelope of each message, and the headers of Ethernet, IP and TCP (`on_wire`). A host that sends
nothing has no envelope, and a gather or broadcast of nothing no latency. With `ranks`, the messages
of a gather come from as many hosts as possible, and the mean share of the largest rank is its
bytes. Token buckets, which the network lab uses, let the first bytes after a pause pass at once
(`burst`), but a round takes at least as long as its bytes take to refill them.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from mpisim.analysis.curves import Axis
from mpisim.comm.communicators import starts, worker_ranks
from mpisim.comm.links import Links, burst, on_wire
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log
from mpisim.runs.log.schema import AT_SERVER


class Traffic(NamedTuple):
    """What a run sent and how long it took: cumulative arrays, of shape (rows,) but for the last.

    rounds, seconds : completed, and measured
    bits_up, bits_down : payload and framing, summed over workers
    bits_up_max : the same, of the busiest worker of each round
    workers : of each rank, of which rank 0 is the server, shape (ranks,)
    messages_up : sent by workers
    receivers : of each broadcast; None for all workers
    """

    rounds: np.ndarray
    seconds: np.ndarray
    bits_up: np.ndarray
    bits_down: np.ndarray
    bits_up_max: np.ndarray
    workers: np.ndarray
    messages_up: np.ndarray
    receivers: int | None = None


def by_row(traffic: Traffic) -> list[np.ndarray]:
    """What each row adds to the first five fields, its exchanges, and its messages."""
    added = [np.diff(values, prepend=0.0) for values in traffic[:5]]
    times = np.maximum(added[0], 1)  # the exchange before round 0 counts as one
    return [*added, times, np.diff(traffic.messages_up, prepend=0.0)]


def of_one(times: np.ndarray, messages: np.ndarray, n: int) -> np.ndarray:
    """The messages in each row of a worker that sends in all of its rounds: as many as those of the
    n workers in the mean, and at least one a round, also where few send several."""
    return np.minimum(np.maximum(times, messages / n), messages)


def seconds(links: Links, traffic: Traffic) -> np.ndarray:
    """Cumulative seconds on these links, shape (rows,): measured, gathers and broadcasts."""
    n = int(traffic.workers.sum())
    rounds, measured, up, down, busiest, times, messages = by_row(traffic)
    most = np.maximum(times, messages / n)  # of one host; several where rounds have more gathers
    if links.ranks:
        away = traffic.workers[1:]
        share = away.sum() / n
        hosts, all_up, messages = int(np.count_nonzero(away)), up * share, messages * share
        busiest_up = up * max(away, default=0) / n
    else:
        hosts, all_up, busiest_up = n, up, busiest
    receivers = traffic.receivers or n
    copy = down / receivers * (hosts > 0)
    together = hosts if links.shared else 1
    sent = np.minimum(together * most, messages)
    gathers = on_wire(all_up if links.shared else busiest_up, sent) / links.up
    copies = min(together, receivers)
    broadcasts = on_wire(copy * copies, copies * times) / links.down
    rest = measured + links.latency * (np.minimum(rounds, messages) + rounds * (copy > 0))
    if not links.bucket:
        return np.cumsum(rest + gathers + broadcasts)
    later = rest + _later(gathers, links.up, times) + _later(broadcasts, links.down, times)
    return np.cumsum(np.max([later, gathers, broadcasts], axis=0))


def _later(taken: np.ndarray, rate: float, times: np.ndarray) -> np.ndarray:
    """The seconds on a link that exceed ``times`` full buckets."""
    return np.maximum(taken - times * burst(rate) / rate, 0.0) if rate < np.inf else taken


@dataclasses.dataclass(frozen=True)
class ModelledSeconds(Axis):
    """An axis of figures: the seconds that a run would have taken on ``links``."""

    links: Links = dataclasses.field(default_factory=Links)

    def values(self, log: Log) -> np.ndarray:
        """Shape (rows,); `InputError` as of `traffic`."""
        return seconds(self.links, traffic(log))

    def label(self, log: Log) -> str:
        return f"modelled seconds, {self.links}"


def over_seconds(links: Links | None, log: bool = True) -> Axis:
    """The axis of modelled seconds; of measured ones without links."""
    return Axis("seconds", log) if links is None else ModelledSeconds("seconds", log, links=links)


def on_a_clock(log: Log) -> bool:
    """Whether the run's rounds took seconds on the clock of a fleet."""
    return "simulated_seconds" in log.columns


def traffic(log: Log) -> Traffic:
    """The traffic of a log.

    `InputError` where a column is missing, the ranks do not fit, or the rounds had a fleet's clock:
    on other links other messages would have arrived, and on an event clock they overlap.
    """
    if on_a_clock(log):
        raise InputError(f"{log.path}: ran on a fleet's clock; see its column simulated_seconds")
    framing = log.column("framing_bits_up")
    ranks = int(log.attrs.get("ranks", 1))
    layout = str(log.config.get("run", {}).get("layout", "shared"))
    if not 1 <= worker_ranks(ranks, layout) <= log.n:
        raise InputError(f"{log.path}: attribute ranks = {ranks} for {log.n} workers")
    sent = Traffic(
        rounds=log.column("round"),
        seconds=log.column("seconds"),
        bits_up=log.column("bits_up") + framing,
        bits_down=log.column("bits_down") + log.column("framing_bits_down"),
        bits_up_max=log.column("bits_up_max"),
        workers=np.diff(starts(log.n, ranks, layout)),
        messages_up=log.column("messages_up"),
        receivers=log.config.get("method", {}).get("participants") if to_some(log) else None,
    )
    *_, times, messages = by_row(sent)
    share = of_one(times, messages, log.n) / np.maximum(messages, 1)  # equal for all messages
    framing_max = np.cumsum(np.diff(framing, prepend=0.0) * share)
    return sent._replace(bits_up_max=sent.bits_up_max + framing_max)


def to_some(log: Log) -> bool:
    """Whether x^k is the server's, which sends it to the clients of the round alone."""
    return log.attrs.get("evaluated_at") == AT_SERVER
