"""What each row of a log asks of a client: seconds, hops and bits.

Who sent in its rounds is drawn once more, at the addresses of the run's draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mpisim.analysis.link_model import Traffic, of_method, traffic
from mpisim.comm.communicators import worker_ranks
from mpisim.comm.fleet import Fleet
from mpisim.comm.links import on_wire
from mpisim.comm.network import drawn_workers
from mpisim.compressors import make
from mpisim.core.errors import InputError
from mpisim.core.machine import VECTORS, reading_budget
from mpisim.core.rng import Draw, Streams
from mpisim.runs.log.reader import Log
from mpisim.runs.log.schema import REPLACED
from mpisim.wire.base import Precision

OF_CLIENTS = ("compute", "compress", "encode")  # the phases of a client's own work
Senders = Callable[[int], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Rows of a log, arrays (rows,), each of `times` equal rounds.

    n : clients; senders : of a round, n where all send; index : the last round of the row
    seconds : measured, with those of a client of factor 1; computing : these alone
    hops : how often a client's latency passes
    up, down : bits on the wire of a client, and most : of the one that sends most
    samples, payload : gradients of samples of a client, and the bits of its messages, both ways
    who : k -> the clients that sent in round k, where not all do; None if the log does not say it
    """

    n: int
    senders: np.ndarray
    times: np.ndarray
    index: np.ndarray
    seconds: np.ndarray
    computing: np.ndarray
    hops: np.ndarray
    up: np.ndarray
    most: np.ndarray
    down: np.ndarray
    samples: np.ndarray
    payload: np.ndarray
    who: Senders | None = None


def rows_of(rounds: Rounds, which: np.ndarray | slice) -> Rounds:
    """Some of the rows."""
    arrays = {n: v[which] for n, v in vars(rounds).items() if n not in ("n", "who")}
    return dataclasses.replace(rounds, **arrays)


def rounds_of(log: Log, fleet: Fleet, ms: float | None = None) -> Rounds:
    """The rounds of a log; `InputError` where a column is missing, or they had a fleet's clock.

    ms : by FedScale's formula, with so many milliseconds of a sample's inference
    """
    counts, (who, several) = traffic(log), who_sent(log)
    parts = [log.columns[f"time_{phase}"] for phase in OF_CLIENTS if f"time_{phase}" in log.columns]
    client_seconds = np.sum(parts, axis=0) if parts else np.zeros(log.rows)
    layout = str(log.config.get("run", {}).get("layout", "shared"))
    ranks = worker_ranks(int(log.attrs.get("ranks", 1)), layout)
    calls = log.column("oracle_calls")
    each = None if isinstance(fleet.seconds, str) else fleet.seconds
    if fleet.seconds == "sample":
        if not calls[-1:].any():
            raise InputError(f"{log.path}: fleet.seconds = 'sample' needs a log with gradients")
        each = client_seconds[-1] * ranks / calls[-1]
    idle = "participants" in log.config.get("method", {})
    if several > 1 and counts.messages_up is not None:  # of a client, sent as one
        counts = counts._replace(messages_up=counts.messages_up / several)
    rounds = made(counts, client_seconds, calls, fleet, each, who, idle)
    return rounds if ms is None else fedscale(rounds, ms)


def made(
    traffic: Traffic,
    client_seconds: np.ndarray,
    calls: np.ndarray,
    fleet: Fleet,
    each: float | None,
    who: Senders | None = None,
    idle: bool = True,
) -> Rounds:
    """From cumulative columns.

    client_seconds : of the slowest rank's clients; calls : gradients of samples, over all workers
    each : seconds of a sample's gradient; None for the seconds that were measured
    who : see `Rounds`; idle : whether clients that do not send do not compute
    """
    n = int(traffic.workers.sum())
    columns = (
        *(traffic.rounds, traffic.seconds, traffic.bits_up, traffic.bits_up_max, traffic.bits_down),
        *(client_seconds, calls),
    )
    rounds, seconds, up, most, down, computing, samples = (
        np.diff(values, prepend=0.0) for values in columns
    )
    times = np.maximum(rounds, 1)  # the exchange before round 0 counts as one
    counted = traffic.messages_up
    messages = n * times if counted is None else np.diff(counted, prepend=0.0)
    senders = np.clip(np.rint(messages / times), 0, n).astype(np.int64)
    clients, repeats = _drawn(traffic.rounds.astype(np.int64), times, senders, n, who)
    working = np.maximum(clients, 1) if idle else n
    others = np.maximum(senders - repeats, 1)
    if each is not None:
        alone = each * samples / working
        seconds, computing = seconds - computing + alone, alone
    copy = down / (traffic.receivers or n)
    rest = np.where(senders > repeats, np.maximum(up - most, 0) / others, most / repeats)
    rest = np.minimum(rest, most / repeats)  # of a message of the others, equally long
    sent = np.minimum(np.maximum(times, messages / n), messages)
    return Rounds(
        n=n, senders=senders, times=times, index=traffic.rounds.astype(np.int64),
        seconds=seconds, computing=computing, hops=np.minimum(rounds, messages) + rounds,
        up=on_wire(rest, sent), most=on_wire(most, sent * repeats), down=on_wire(copy, times),
        samples=samples / working, payload=most + copy, who=who,
    )  # fmt: skip


def _drawn(
    ends: np.ndarray, times: np.ndarray, senders: np.ndarray, n: int, who: Senders | None
) -> tuple[np.ndarray, np.ndarray]:
    """How many clients send in a round, and the messages of the one that sends most: (rows,) each.

    Means over a row's rounds.
    """
    clients, repeats = senders.astype(float), np.ones(len(ends))
    if who is not None:
        for row in np.flatnonzero((senders < n) & (senders > 0)).tolist():
            counts = [
                np.unique(who(max(k, 0)), return_counts=True)[1]
                for k in range(int(ends[row] - times[row]), int(ends[row]))
            ]
            clients[row] = np.mean([len(one) for one in counts])
            repeats[row] = max(np.mean([one.max(initial=0) for one in counts]), 1.0)
    return clients, repeats


def fedscale(rounds: Rounds, ms: float) -> Rounds:
    """The same rounds by FedScale's formula, 3 x batch x steps x ms + bytes / bandwidth.

    `ClientMetadata.get_completion_time` in its fedscale/cloud/internal/client_metadata.py. Its
    bandwidth is the client's download. ms : of a sample's inference, at factor 1
    """
    computing, nothing = 3 * rounds.samples * ms / 1000, np.zeros_like(rounds.up)
    sent: dict[str, Any] = {"hops": nothing, "up": nothing, "most": nothing, "down": rounds.payload}
    return dataclasses.replace(rounds, seconds=computing, computing=computing, **sent)


def who_sent(log: Log) -> tuple[Senders | None, int]:
    """k -> the workers that sent in round k, ascending; and how many messages each sends.

    They are the method's participants, one that is drawn t times t times, or those whose compressor
    sends something. It is for rows in which not all send. None where the numbers of messages in the
    log are not those of the draws: with rows of several unlike rounds, an older log, or a method
    that draws otherwise.
    """
    if "messages_up" not in log.columns:
        return None, 1
    ends = log.columns["round"].tolist()
    times = np.diff(ends, prepend=0).clip(1)
    messages = np.diff(log.columns["messages_up"], prepend=0)
    drawn, several, n = _of_compressor(log), 1, log.n
    if participants := _participants(log):
        drawn, r, replaced = participants
        if not replaced:
            several = max(int((messages / times)[messages > 0].min(initial=n) // r), 1)
    if drawn is None:
        return None, 1
    for end, rounds, count in zip(ends, times.tolist(), messages.tolist(), strict=True):
        if 0 < count < n * rounds * several:
            here = sum(len(drawn(max(k, 0))) for k in range(end - rounds, end))
            if count != several * here:
                return None, 1
    return drawn, several


def _participants(log: Log) -> tuple[Senders, int, bool] | None:
    """By a key ``participants`` of the method, this number, and whether with replacement."""
    r, n = log.config.get("method", {}).get("participants"), log.n
    replaced = of_method(log, "clients_drawn", REPLACED, "replaced")
    if not isinstance(r, int) or not 1 <= r < n:
        return None
    streams = Streams(int(log.config["run"]["seed"]))
    return lambda k: drawn_workers(Draw(streams, "sample", k, 0, 1), n, r, replaced), r, replaced


def _of_compressor(log: Log) -> Senders | None:
    """Of a compressor whose messages have lengths that are known before the values are."""
    run, n, d = log.config.get("run", {}), log.n, int(log.attrs.get("dimension", 0))
    with reading_budget() as budget:
        if d < 1 or 8.0 * VECTORS * n * d > budget.bytes:
            return None
    try:
        precision = Precision(np.dtype(run.get("wire", "f4")), np.dtype(run.get("dtype", "f8")))
        compressor = make(log.config["compressor"]).bind(d, n, precision)
    except (InputError, KeyError, TypeError):  # a plugin's, or none
        return None
    streams = Streams(int(run["seed"]))

    @cache
    def sending(k: int) -> np.ndarray:
        sizes = compressor.form(Draw(streams, "up", k, 0, n)).sizes
        return np.arange(n) if sizes is None else np.flatnonzero(sizes)

    return sending
