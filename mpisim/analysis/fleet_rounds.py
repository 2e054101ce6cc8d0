"""What each row of a log asks of a client: seconds, hops and bits.

Who sent in its rounds is drawn once more, at the addresses of the run's draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis.link_model import Traffic, by_row, of_one, traffic
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

    n : clients; senders : of a round, or those that compute where nobody sends (`silent`)
    index : the last round of the row
    seconds : measured, with those of a client of factor 1; computing : these alone
    hops : how often a client's latency passes
    up, down : bits on the wire of a client, and most : of the one that sends most
    samples, payload : gradients of samples of a client, and the bits of its messages, both ways
    drawn : whether the senders are those of ``who``; else all n, or not known
    who : k -> the clients that sent in round k; None if the log does not say it
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
    silent: np.ndarray
    drawn: np.ndarray
    who: Senders | None = None


class Sent(NamedTuple):
    """Who sent in the rounds of a log.

    who : k -> the workers that sent in round k, ascending, one that is drawn t times t times
    several : messages of each in a round, (rows,); 0 in rows in which all workers send, or none
    """

    who: Senders
    several: np.ndarray


def rows_of(rounds: Rounds, which: np.ndarray | slice) -> Rounds:
    """Some of the rows."""
    arrays = {n: v[which] for n, v in vars(rounds).items() if n not in ("n", "who")}
    return dataclasses.replace(rounds, **arrays)


def rounds_of(log: Log, fleet: Fleet, ms: float | None = None) -> Rounds:
    """The rounds of a log; `InputError` where a column is missing, or they had a fleet's clock.

    ms : by FedScale's formula, with so many milliseconds of a sample's inference
    """
    counts = traffic(log)
    parts = [log.columns[f"time_{phase}"] for phase in OF_CLIENTS if f"time_{phase}" in log.columns]
    client_seconds = np.sum(parts, axis=0) if parts else np.zeros(log.rows)
    calls = log.column("oracle_calls")
    each = None if isinstance(fleet.seconds, str) else fleet.seconds
    if fleet.seconds == "sample":
        if not calls[-1:].any():
            raise InputError(f"{log.path}: fleet.seconds = 'sample' needs a log with gradients")
        each = client_seconds[-1] * np.count_nonzero(counts.workers) / calls[-1]
    r = log.config.get("method", {}).get("participants")
    participants = r if isinstance(r, int | None) else 1  # a plugin's key
    rounds = made(counts, client_seconds, calls, each, who_sent(log), participants)
    return rounds if ms is None else fedscale(rounds, ms)


def made(
    traffic: Traffic,
    client_seconds: np.ndarray,
    calls: np.ndarray,
    each: float | None,
    sent: Sent | None = None,
    participants: int | None = None,
) -> Rounds:
    """From cumulative columns.

    client_seconds : of the slowest rank's clients; calls : gradients of samples, over all workers
    each : seconds of a sample's gradient; None for the seconds that were measured
    sent : None where that is not known
    participants : of a round, where the others do not compute; all compute unless given
    """
    n = int(traffic.workers.sum())
    rounds, seconds, up, down, most, times, messages = by_row(traffic)
    computing, samples = (np.diff(values, prepend=0.0) for values in (client_seconds, calls))
    index = traffic.rounds.astype(np.int64)
    who, several = sent or (None, np.zeros(len(index), np.int64))
    messages = messages / np.maximum(several, 1)  # of a client, sent as one
    senders = np.clip(np.rint(messages / times), messages > 0, n).astype(np.int64)
    clients, repeats = senders.astype(float), np.ones(len(index))
    if who is not None:
        for row in np.flatnonzero(several).tolist():
            clients[row], repeats[row] = _counts(who, int(index[row]), int(times[row]))
    least = n if participants is None else min(max(participants, 1), n)
    known = (several > 0) & (participants is not None)
    working = np.where(known, clients, np.maximum(senders, least))
    others = np.maximum(senders - repeats, 1)
    if each is not None:
        alone = each * samples / working
        seconds, computing = seconds - computing + alone, alone
    copy, silent = down / (traffic.receivers or n), (senders == 0) & (index > 0)
    rest = np.where(senders > repeats, np.maximum(up - most, 0) / others, most / repeats)
    rest = np.minimum(rest, most / repeats)  # of a message of the others, equally long
    single = of_one(times, messages, n)
    return Rounds(
        n=n, senders=np.where(silent, least, senders), times=times, index=index, seconds=seconds,
        computing=computing, hops=np.minimum(rounds, messages) + rounds * (down > 0),
        up=on_wire(rest, single), most=on_wire(most, single * repeats), down=on_wire(copy, times),
        samples=samples / working, payload=most + copy, silent=silent, drawn=several > 0, who=who,
    )  # fmt: skip


def _counts(who: Senders, end: int, times: int) -> tuple[float, float]:
    """Clients that send, and messages of the one that sends most: means over a row's rounds."""
    counts = [np.unique(who(k), return_counts=True)[1] for k in _before(end, times)]
    most = np.mean([one.max(initial=0) for one in counts])
    return float(np.mean([len(one) for one in counts])), max(float(most), 1.0)


def _before(end: int, times: int) -> list[int]:
    """The rounds of a row; those of the exchange before round 0 are drawn as round 0 is."""
    return [max(k, 0) for k in range(end - times, end)]


def fedscale(rounds: Rounds, ms: float) -> Rounds:
    """The same rounds by FedScale's formula, 3 x batch x steps x ms + bytes / bandwidth.

    `ClientMetadata.get_completion_time` in its fedscale/cloud/internal/client_metadata.py. Its
    bandwidth is the client's download. ms : of a sample's inference, at factor 1
    """
    computing, nothing = 3 * rounds.samples * ms / 1000, np.zeros_like(rounds.up)
    sent: dict[str, Any] = {"hops": nothing, "up": nothing, "most": nothing, "down": rounds.payload}
    return dataclasses.replace(rounds, seconds=computing, computing=computing, **sent)


def who_sent(log: Log) -> Sent | None:
    """The method's participants, or the workers whose compressor sends something.

    None where the numbers of messages in the log are not those of the draws: with rows of several
    unlike rounds, or a method that draws otherwise.
    """
    n, ends = log.n, log.columns["round"].astype(np.int64)
    times = np.diff(ends, prepend=0).clip(1)
    messages, up, most = (
        np.diff(log.column(name), prepend=0) for name in ("messages_up", "bits_up", "bits_up_max")
    )
    several = 1
    if participants := _participants(log):
        who, r, replaced = participants
        some = (messages > 0) & (n * most > up)  # else every worker sends as many bits
        if r == n and (times[some] > 1).any():  # some of these rounds may be of all
            return None
        if some.any() and not replaced:
            several = max(int((messages / times)[some].min() // r), 1)
    elif sending := _of_compressor(log):
        who, some = sending, (messages > 0) & (messages < n * times)
    else:
        return None
    for row in np.flatnonzero(some).tolist():
        drawn = sum(len(who(k)) for k in _before(int(ends[row]), int(times[row])))
        if messages[row] != several * drawn:
            return None
    return Sent(who, np.where(some, several, 0))


def _participants(log: Log) -> tuple[Senders, int, bool] | None:
    """By a key ``participants`` of the method, this number, and whether with replacement."""
    r, n = log.config.get("method", {}).get("participants"), log.n
    replaced = log.attrs.get("clients_drawn") == REPLACED
    if not isinstance(r, int) or not 1 <= r < n + replaced:
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
