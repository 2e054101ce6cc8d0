"""The seconds of synchronous rounds on a fleet, and who was left out of them.

A client receives its copy of the broadcast, computes, and sends its message. A round ends with its
slowest client, or at the deadline. Where r of n clients take part, they are those that sent in the
run (`participants`), or the fleet draws them; with more invited, the fleet draws these, the fastest
r count, and the others are not waited for.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numba import njit

from mpisim.analysis.fleet_rounds import Rounds, rows_of
from mpisim.comm.fleet import Clients, Fleet
from mpisim.core.numerics import philox
from mpisim.core.rng import Draw, Streams, purpose_key

BLOCK = 1 << 14  # clients at a time
GROUP, FEW = 32, 64  # rows, and clients, that are bounded together
ROUNDING = 1e-12  # relative, more than that of the few sums of a client's seconds
PRESENCE = purpose_key("fleet/presence")


class Seconds(NamedTuple):
    """Cumulative seconds, and the share of messages so far that were dropped or late: (rows,)."""

    seconds: np.ndarray
    left_out: np.ndarray


def seconds(rounds: Rounds, fleet: Fleet, seed: int | None = None) -> Seconds:
    """The seconds of the rounds on the fleet of a seed, its own unless given."""
    seed = fleet.seed if seed is None else seed
    slowest = rounds.seconds - rounds.computing  # the server's
    left_out, sent = np.zeros((2, len(slowest)))
    all_send = (rounds.senders == rounds.n) & ~rounds.drawn
    everyone = np.flatnonzero(all_send)
    if everyone.size:
        times = rounds.times[everyone]
        slowest[everyone], late = _all(rows_of(rounds, everyone), fleet, seed)
        left_out[everyone], sent[everyone] = times * late, times * rounds.n
    some = np.flatnonzero(~all_send & (rounds.senders > 0))
    clients = fleet.clients(np.arange(rounds.n), seed) if some.size and rounds.n < BLOCK else None
    for row in some:
        taken, left_out[row], sent[row] = _some(rounds, int(row), fleet, seed, clients)
        slowest[row] = max(slowest[row], taken)
    left_out, sent = (np.cumsum(~rounds.silent * count) for count in (left_out, sent))
    return Seconds(np.cumsum(slowest), left_out / np.maximum(sent, 1))


def _all(rounds: Rounds, fleet: Fleet, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of rounds in which all clients send, and how many of a round were left out: (rows,).

    Those who drop out, beside those who are late, are counted by their chance.
    """
    order = np.lexsort((rounds.down, rounds.up))  # rows that ask for much alike, side by side
    rows = rows_of(rounds, order)
    slowest, late = rows.seconds - rows.computing, np.zeros(len(order), np.int64)
    limit = rows.times * (inf if fleet.deadline is None else fleet.deadline)
    draw = Draw(Streams(seed), "fleet/busiest", 0, 0, 1)
    busiest = draw.samples(np.array([rows.n]), len(slowest))[0][order]
    for first in range(0, rows.n, BLOCK):
        c = fleet.clients(np.arange(first, min(first + BLOCK, rows.n)), seed)
        _slowest(
            slowest, late, rows.seconds, rows.computing, rows.hops, rows.up, rows.most, rows.down,
            limit, rows.index, busiest - first, c.up, c.down, c.latency, c.factor, first, seed,
            PRESENCE, fleet.availability, fleet.dropout,
        )  # fmt: skip
    absent = 1 - fleet.availability * (1 - fleet.dropout)
    back = np.argsort(order)
    return slowest[back], (late + absent * (rows.n - late))[back]


@njit(cache=True, error_model="numpy")
def _slowest(
    slowest, late, own, computing, hops, up, most, down, limit, index, busiest, up_rate, down_rate,
    latency, factor, first, seed, purpose, availability, dropout,
):  # fmt: skip
    """Raise ``slowest`` (rows,) to a block's clients, and ``late`` by those of them that were late.

    Seconds are added in the order of `link_model.seconds`: equal clients give the same bits. Of a
    group of rows only those clients are looked at who may be the slowest, or late, in one of them:
    what a client takes beside ``own`` is at most ``bound``. The presence of others decides nothing.
    """
    rows, there = slowest.size, availability * (1.0 - dropout)
    waits = limit.min() < np.inf and dropout > 0  # for a client that drops out
    worst_up, worst_down = _least(up_rate), _least(down_rate)
    worst_latency, worst_factor = -_least(-latency), -_least(-factor)
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
        for few in range(worst_up.size):
            more = worst_factor[few] - 1.0
            bound = more * (slow if more > 0 else quick) + worst_latency[few] * far
            if bound + longest / worst_up[few] + back / worst_down[few] <= spare:
                continue
            for i in range(few * FEW, min(few * FEW + FEW, latency.size)):
                more = factor[i] - 1.0
                bound = more * (slow if more > 0 else quick) + latency[i] * far
                if bound + longest / up_rate[i] + back / down_rate[i] <= spare:
                    continue
                for k in range(start, stop):
                    taken = own[k] + more * computing[k] + latency[i] * hops[k]
                    taken = taken + up[k] / up_rate[i] + down[k] / down_rate[i]
                    late[k] += taken > limit[k]
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
            late[k] += usual <= limit[k] < last
            if there == 1 or _presence(seed, purpose, index[k], first + i) >= 1.0 - there:
                slowest[k] = max(slowest[k], last)
        slowest[k] = min(slowest[k], limit[k])


@njit(cache=True)
def _least(values):
    """The least of each `FEW` values."""
    out = np.empty((values.size + FEW - 1) // FEW)
    for few in range(out.size):
        out[few] = values[few * FEW : few * FEW + FEW].min()
    return out


@njit(cache=True, error_model="numpy")
def _presence(seed, purpose, index, client):
    """The uniform number of a client in a round, which says whether it is there."""
    words = philox.step(seed, purpose, index // philox.WORDS + 1, 0, client, 0)
    return (words[index % philox.WORDS] >> np.uint64(11)) * 2.0**-53


def _some(
    rounds: Rounds, row: int, fleet: Fleet, seed: int, clients: Clients | None
) -> tuple[float, int, int]:
    """Seconds of a row's rounds in which not all send; messages left out, and all of them.

    clients : all n; None for those of a round to be drawn in it
    """
    times, limit = int(rounds.times[row]), fleet.deadline or inf
    total, left_out, sent = 0.0, 0, 0
    server = (rounds.seconds[row] - rounds.computing[row]) / times
    for index in range(int(rounds.index[row]) - times + 1, int(rounds.index[row]) + 1):
        who, messages, r = _clients(rounds, row, index, fleet, seed)
        most = np.flatnonzero(messages == messages.max())
        draw = Draw(Streams(seed), "fleet/busiest", max(index, 0), 0, 1)
        up = messages * rounds.up[row]
        up[most[draw.samples(np.array([len(most)]), 1)[0, 0]]] = rounds.most[row]
        c = clients.of(who) if clients else fleet.clients(who, seed)
        taken = rounds.seconds[row] + (c.factor - 1) * rounds.computing[row]
        taken = taken + c.latency * rounds.hops[row] + up / c.up + rounds.down[row] / c.down
        taken /= times
        order = np.argsort(taken, kind="stable")
        taken, messages = taken[order], messages[order]
        u = Draw(Streams(seed), "fleet/present", max(index, 0), 0, 1).uniforms(len(who))[0]
        # presence does not depend on speed, so it may be dealt to the sorted times
        there = u >= 1 - fleet.availability
        comes = u >= 1 - fleet.availability * (1 - fleet.dropout)
        counts = np.flatnonzero(comes & (taken <= limit))[:r]  # the fastest r
        waits = limit < inf and len(counts) < min(r, int(there.sum()))
        total += limit if waits else float(max(taken[counts], default=server))
        due = int(messages.sum()) if len(who) == r else r
        left_out, sent = left_out + due - int(messages[counts].sum()), sent + due
    return total, left_out, sent


def _clients(
    rounds: Rounds, row: int, index: int, fleet: Fleet, seed: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Of the round before x^index: clients (ascending), messages of each, and how many count."""
    n, r = rounds.n, int(rounds.senders[row])
    invited = min(max(r, fleet.invited or r), n)
    if rounds.who is not None and rounds.drawn[row] and invited == r:
        who, messages = np.unique(rounds.who(max(index - 1, 0)), return_counts=True)
        if not who.size:  # all compute, and have nothing to send
            who, messages = np.arange(n), np.zeros(n, np.int64)
        return who, messages, len(who)
    draw = Draw(Streams(seed), "fleet/invited", max(index, 0), 0, 1)
    return draw.subsets(n, invited)[0], np.ones(invited, np.int64), r
