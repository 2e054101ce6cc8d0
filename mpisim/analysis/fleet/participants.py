"""Who sent in the rounds of a run: drawn once more, at the addresses of the run's draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from mpisim.comm.network import drawn_workers
from mpisim.compressors import make
from mpisim.core.errors import InputError
from mpisim.core.machine import VECTORS, reading_budget
from mpisim.core.rng import Draw, Streams
from mpisim.runs.log.reader import Log
from mpisim.wire.base import Precision

Senders = Callable[[int], np.ndarray]
REPLACED = ("pp-marina",)  # estimators that draw their participants with replacement


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
        drawn, r = participants
        if log.config["method"].get("estimator") not in REPLACED:
            several = max(int((messages / times)[messages > 0].min(initial=n) // r), 1)
    if drawn is None:
        return None, 1
    for end, rounds, count in zip(ends, times.tolist(), messages.tolist(), strict=True):
        if 0 < count < n * rounds * several:
            here = sum(len(drawn(max(k, 0))) for k in range(end - rounds, end))
            if count != several * here:
                return None, 1
    return drawn, several


def _participants(log: Log) -> tuple[Senders, int] | None:
    """By a key ``participants`` of the method, and this number."""
    table, n = log.config.get("method", {}), log.n
    r, replace = table.get("participants"), table.get("estimator") in REPLACED
    if not isinstance(r, int) or not 1 <= r < n:
        return None
    streams = Streams(int(log.config["run"]["seed"]))
    return lambda k: drawn_workers(Draw(streams, "sample", k, 0, 1), n, r, replace), r


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
