"""The seconds of synchronous rounds on a fleet, and who was left out of them.

`Rounds` is what each row of a log asks of a client: seconds, hops and bits.

A client receives its copy of the broadcast, computes, and sends its message. A round ends with its
slowest client, or at the deadline. Where r of n clients take part, they are those that sent in the
run (`participants`), or the fleet draws them; with more invited, the fleet draws these, the fastest
r count, and the others are not waited for.
"""

from __future__ import annotations

import dataclasses
from math import inf

import numpy as np
from numba import njit

from mpisim.analysis.curves import Axis
from mpisim.analysis.fleet.participants import Senders, who_sent
from mpisim.analysis.link_model import Traffic, traffic
from mpisim.comm.communicators import worker_ranks
from mpisim.comm.fleet import Clients, Fleet
from mpisim.comm.links import on_wire
from mpisim.core.errors import InputError
from mpisim.core.numerics import philox
from mpisim.core.rng import Draw, Streams, purpose_key
from mpisim.runs.log.reader import Log

BLOCK = 1 << 14  # clients at a time
GROUP = 32  # rows that are bounded together
ROUNDING = 1e-12  # relative, more than that of the few sums of a client's seconds
PRESENCE = purpose_key("fleet/presence")
OF_CLIENTS = ("compute", "compress", "encode")  # the phases of a client's own work


@dataclasses.dataclass(frozen=True)
class Seconds:
    """Cumulative seconds (rows,), and the share of the messages that were dropped or late."""

    seconds: np.ndarray
    left_out: float


def seconds(rounds: Rounds, fleet: Fleet, seed: int | None = None) -> Seconds:
    """The seconds of the rounds on the fleet of a seed, its own unless given."""
    seed = fleet.seed if seed is None else seed
    slowest = rounds.seconds - rounds.computing  # the server's
    left_out, sent = 0.0, 0
    everyone = np.flatnonzero(rounds.senders == rounds.n)
    if everyone.size:
        slowest[everyone], left_out = _all(rows_of(rounds, everyone), fleet, seed)
        sent = rounds.n * everyone.size
    some = np.flatnonzero((rounds.senders < rounds.n) & (rounds.senders > 0))
    clients = fleet.clients(np.arange(rounds.n), seed) if some.size and rounds.n < BLOCK else None
    for row in some:
        taken, late = _some(rounds, int(row), fleet, seed, clients)
        slowest[row] = max(slowest[row], taken)
        left_out, sent = left_out + late, sent + int(rounds.senders[row])
    return Seconds(np.cumsum(slowest), left_out / max(sent, 1))


def rows_of(rounds: Rounds, which: np.ndarray | slice) -> Rounds:
    """Some of the rows."""
    arrays = {
        field.name: getattr(rounds, field.name)[which]
        for field in dataclasses.fields(rounds)
        if field.name not in ("n", "who")
    }
    return Rounds(n=rounds.n, who=rounds.who, **arrays)


def _all(rounds: Rounds, fleet: Fleet, seed: int) -> tuple[np.ndarray, float]:
    """Seconds (rows,) of rounds in which all clients send, and how many were left out.

    Those who drop out, beside those who are late, are counted by their chance.
    """
    order = np.lexsort((rounds.down, rounds.up))  # rows that ask for much alike, side by side
    rows = rows_of(rounds, order)
    slowest, late = rows.seconds - rows.computing, 0
    limit = rows.times * (inf if fleet.deadline is None else fleet.deadline)
    draw = Draw(Streams(seed), "fleet/busiest", 0, 0, 1)
    busiest = draw.samples(np.array([rows.n]), len(slowest))[0][order]
    for first in range(0, rows.n, BLOCK):
        c = fleet.clients(np.arange(first, min(first + BLOCK, rows.n)), seed)
        late += _slowest(
            slowest, rows.seconds, rows.computing, rows.hops, rows.up, rows.most, rows.down,
            limit, rows.index, busiest - first, c.up, c.down, c.latency, c.factor, first, seed,
            PRESENCE, fleet.availability, fleet.dropout,
        )  # fmt: skip
    absent = 1 - fleet.availability * (1 - fleet.dropout)
    out = np.empty_like(slowest)
    out[order] = slowest
    return out, late + absent * (rows.n * len(slowest) - late)


@njit(cache=True, error_model="numpy")
def _slowest(
    slowest, own, computing, hops, up, most, down, limit, index, busiest, up_rate, down_rate,
    latency, factor, first, seed, purpose, availability, dropout,
):  # fmt: skip
    """Raise ``slowest`` (rows,) to a block's clients; returns how many were late.

    Seconds are added in the order of `link_model.seconds`: equal clients give the same bits. Of a
    group of rows only those clients are looked at who may be the slowest, or late, in one of them:
    what a client takes beside ``own`` is at most ``bound``. The presence of others decides nothing.
    """
    rows, late, there = slowest.size, 0, availability * (1.0 - dropout)
    waits = limit.min() < np.inf and dropout > 0  # for a client that drops out
    for start in range(0, rows, GROUP):
        stop = min(start + GROUP, rows)
        group = slice(start, stop)
        quick, slow = computing[group].min(), computing[group].max()
        far, longest, back = hops[group].max(), up[group].max(), down[group].max()
        spare = np.inf
        for k in range(start, stop):
            spare = min(spare, min(slowest[k], limit[k]) * (1 - ROUNDING) - own[k])
            if waits and slowest[k] < limit[k]:
                spare = -np.inf
        for i in range(latency.size):
            more = factor[i] - 1.0
            bound = more * (slow if more > 0 else quick) + latency[i] * far
            if bound + longest / up_rate[i] + back / down_rate[i] <= spare:
                continue
            for k in range(start, stop):
                taken = own[k] + more * computing[k] + latency[i] * hops[k]
                taken = taken + up[k] / up_rate[i] + down[k] / down_rate[i]
                late += taken > limit[k]
                if there < 1 and (taken > slowest[k] or (waits and slowest[k] < limit[k])):
                    u = _presence(seed, purpose, index[k], first + i)
                    if u < 1.0 - there:
                        taken = limit[k] if waits and u >= 1.0 - availability else 0.0
                slowest[k] = taken if taken > slowest[k] else slowest[k]
    for k in range(rows):  # the client that sends most
        i = busiest[k]
        if most[k] > up[k] and 0 <= i < latency.size:
            usual = own[k] + (factor[i] - 1.0) * computing[k] + latency[i] * hops[k]
            last = usual + most[k] / up_rate[i] + down[k] / down_rate[i]
            usual = usual + up[k] / up_rate[i] + down[k] / down_rate[i]
            late += usual <= limit[k] < last
            if there == 1 or _presence(seed, purpose, index[k], first + i) >= 1.0 - there:
                slowest[k] = max(slowest[k], last)
        slowest[k] = min(slowest[k], limit[k])
    return late


@njit(cache=True, error_model="numpy")
def _presence(seed, purpose, index, client):
    """The uniform number of a client in a round, which says whether it is there."""
    words = philox.step(seed, purpose, index // philox.WORDS + 1, 0, client, 0)
    return (words[index % philox.WORDS] >> np.uint64(11)) * 2.0**-53


def _some(
    rounds: Rounds, row: int, fleet: Fleet, seed: int, clients: Clients | None
) -> tuple[float, int]:
    """Seconds of a row's rounds in which r of n clients send, and how many were left out.

    clients : all n; None for those of a round to be drawn in it
    """
    times, limit = int(rounds.times[row]), fleet.deadline or inf
    total, left_out = 0.0, 0
    server = (rounds.seconds[row] - rounds.computing[row]) / times
    for index in range(int(rounds.index[row]) - times + 1, int(rounds.index[row]) + 1):
        who, messages, r = _clients(rounds, row, index, fleet, seed)
        if not who.size:
            total += server
            continue
        most = np.flatnonzero(messages == messages.max())
        draw = Draw(Streams(seed), "fleet/busiest", max(index, 0), 0, 1)
        busiest = most[draw.samples(np.array([len(most)]), 1)[0, 0]]
        c = clients.of(who) if clients else fleet.clients(who, seed)
        taken = _taken(rounds, row, times, c, messages, busiest)
        order = np.argsort(taken, kind="stable")
        taken, messages = taken[order], messages[order]
        u = Draw(Streams(seed), "fleet/present", max(index, 0), 0, 1).uniforms(len(who))[0]
        # presence does not depend on speed, so it may be dealt to the sorted times
        there = u >= 1 - fleet.availability
        comes = u >= 1 - fleet.availability * (1 - fleet.dropout)
        counts = np.flatnonzero(comes & (taken <= limit))[:r]  # the fastest r
        waits = limit < inf and len(counts) < min(r, int(there.sum()))
        total += limit if waits else float(max(taken[counts], default=server))
        left_out += int(rounds.senders[row]) - int(messages[counts].sum())
    return total, left_out


def _clients(
    rounds: Rounds, row: int, index: int, fleet: Fleet, seed: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Of the round before x^index: clients (ascending), messages of each, and how many count."""
    n, r = rounds.n, int(rounds.senders[row])
    invited = min(max(r, fleet.invited or r), n)
    if rounds.who is not None and invited == r:
        who, messages = np.unique(rounds.who(max(index - 1, 0)), return_counts=True)
        return who, messages, len(who)
    draw = Draw(Streams(seed), "fleet/invited", max(index, 0), 0, 1)
    return draw.subsets(n, invited)[0], np.ones(invited, np.int64), r


def _taken(
    rounds: Rounds, row: int, times: int, c: Clients, messages: np.ndarray, busiest: int
) -> np.ndarray:
    """Seconds of each of these clients in one of the row's rounds, shape (clients,)."""
    up = messages * rounds.up[row]
    up[busiest] = rounds.most[row]
    seconds = rounds.seconds[row] + (c.factor - 1) * rounds.computing[row]
    seconds = seconds + c.latency * rounds.hops[row] + up / c.up + rounds.down[row] / c.down
    return seconds / times


@dataclasses.dataclass(frozen=True)
class FleetSeconds(Axis):
    """An axis of figures: the seconds that a run would have taken with a fleet.

    seed : of the fleet, instead of its own; ms : of a sample's inference, by FedScale's formula
    """

    fleet: Fleet = dataclasses.field(default_factory=Fleet)
    seed: int | None = None
    ms: float | None = None

    def values(self, log: Log) -> np.ndarray:
        """Shape (rows,); `InputError` where a column is missing or the ranks do not fit."""
        return self.of(log).seconds

    def of(self, log: Log) -> Seconds:
        """The seconds of a log, and the share left out."""
        return seconds(rounds_of(log, self.fleet, self.ms), self.fleet, self.seed)

    def label(self, log: Log) -> str:
        return f"modelled seconds, {self.fleet}"


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


def on_a_clock(log: Log) -> bool:
    """Whether the run's rounds took seconds on the clock of a fleet."""
    return "simulated_seconds" in log.columns


def rounds_of(log: Log, fleet: Fleet, ms: float | None = None) -> Rounds:
    """The rounds of a log; `InputError` where a column is missing, or they had a fleet's clock.

    ms : by FedScale's formula, with so many milliseconds of a sample's inference
    """
    if on_a_clock(log):
        raise InputError(f"{log.path}: ran on a fleet's clock; see its column simulated_seconds")
    parts = [log.columns[f"time_{phase}"] for phase in OF_CLIENTS if f"time_{phase}" in log.columns]
    own = np.sum(parts, axis=0) if parts else np.zeros(log.rows)
    layout = str(log.config.get("run", {}).get("layout", "shared"))
    ranks = worker_ranks(int(log.attrs.get("ranks", 1)), layout)
    calls = log.column("oracle_calls")
    each = None if isinstance(fleet.seconds, str) else fleet.seconds
    if fleet.seconds == "sample":
        if not calls[-1:].any():
            raise InputError(f"{log.path}: fleet.seconds = 'sample' needs a log with gradients")
        each = own[-1] * ranks / calls[-1]
    idle = "participants" in log.config.get("method", {})
    counts, (who, several) = traffic(log), who_sent(log)
    if several > 1 and counts.messages_up is not None:  # of a client, sent as one
        counts = dataclasses.replace(counts, messages_up=counts.messages_up / several)
    rounds = made(counts, own, calls, fleet, each, who, idle)
    return rounds if ms is None else fedscale(rounds, ms)


def made(
    traffic: Traffic,
    own: np.ndarray,
    calls: np.ndarray,
    fleet: Fleet,
    each: float | None,
    who: Senders | None = None,
    idle: bool = True,
) -> Rounds:
    """From cumulative columns.

    own : seconds of the slowest rank's clients; calls : gradients of samples, over all workers
    each : seconds of a sample's gradient; None for the seconds that were measured
    who : see `Rounds`; idle : whether clients that do not send do not compute
    """
    n = int(traffic.workers.sum())
    columns = (
        *(traffic.rounds, traffic.seconds, traffic.bits_up, traffic.bits_up_max, traffic.bits_down),
        *(own, calls),
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
    return dataclasses.replace(
        rounds, seconds=computing, computing=computing, hops=nothing, up=nothing, most=nothing,
        down=rounds.payload,
    )  # fmt: skip
