"""What each row of a log asks of a client: seconds, hops and bits."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.analysis.link_model import Traffic, traffic
from mpisim.comm.fleet import Fleet
from mpisim.comm.links import on_wire
from mpisim.comm.side_channel import worker_ranks
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

OF_CLIENTS = ("compute", "compress", "encode")  # the phases of a client's own work


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Rows of a log, arrays (rows,), each of `times` equal rounds.

    n : clients; senders : of a round, n where all send; index : the last round of the row
    seconds : measured, with those of a client of factor 1; computing : these alone
    hops : how often a client's latency passes
    up, down : bits on the wire of a client, and most : of the one that sends most
    samples, payload : gradients of samples of a client, and the bits of its messages, both ways
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


def rounds_of(log: Log, fleet: Fleet) -> Rounds:
    """The rounds of a log; `InputError` where a column is missing, or they had a fleet's clock."""
    if "simulated_seconds" in log.columns:
        raise InputError(f"{log.path}: ran on a fleet's clock; see its column simulated_seconds")
    parts = [log.columns[f"time_{phase}"] for phase in OF_CLIENTS if f"time_{phase}" in log.columns]
    own = np.sum(parts, axis=0) if parts else np.zeros(log.rows)
    layout = str(log.config.get("run", {}).get("layout", "shared"))
    ranks = worker_ranks(int(log.attrs.get("ranks", 1)), layout)
    calls = log.column("oracle_calls")
    if fleet.seconds == "sample":
        if not calls[-1:].any():
            raise InputError(f"{log.path}: fleet.seconds = 'sample' needs a log with gradients")
        return made(traffic(log), own, calls, fleet, own[-1] * ranks / calls[-1])
    each = None if isinstance(fleet.seconds, str) else fleet.seconds
    return made(traffic(log), own, calls, fleet, each)


def made(
    traffic: Traffic, own: np.ndarray, calls: np.ndarray, fleet: Fleet, each: float | None
) -> Rounds:
    """From cumulative columns.

    own : seconds of the slowest rank's clients; calls : gradients of samples, over all workers
    each : seconds of a sample's gradient; None for the seconds that were measured
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
    per_sender = np.maximum(senders, 1)
    others = np.maximum(senders - 1, 1)
    if each is not None:
        alone = each * samples / per_sender
        seconds, computing = seconds - computing + alone, alone
    copy = down / (traffic.receivers or n)
    rest = np.where(senders > 1, np.maximum(up - most, 0) / others, most)
    rest = np.minimum(rest, most)  # of the others, equally long
    sent = np.minimum(np.maximum(times, messages / n), messages)
    return Rounds(
        n=n, senders=senders, times=times, index=traffic.rounds.astype(np.int64),
        seconds=seconds, computing=computing, hops=np.minimum(rounds, messages) + rounds,
        up=on_wire(rest, sent), most=on_wire(most, sent), down=on_wire(copy, times),
        samples=samples / per_sender, payload=most + copy,
    )  # fmt: skip


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
