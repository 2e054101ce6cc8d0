"""Check that all ranks of a job have the same software, experiment and data."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpisim.core.errors import InconsistentRanks

if TYPE_CHECKING:
    from mpi4py import MPI

Facts = Mapping[str, str]


def require_consistent(comm: MPI.Intracomm, facts: Facts) -> None:
    """Raise the same `InconsistentRanks` on every rank unless ``facts`` are the same on all.

    Collective. Ranks exchange 32 bytes, and the facts themselves only if these differ.
    """
    if comm.size == 1:
        return
    text = json.dumps(sorted(facts.items()))
    own = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
    digests = np.empty((comm.size, own.size), np.uint8)
    comm.Allgather(own, digests)
    if (digests == digests[0]).all():
        return
    gathered = comm.allgather((dict(facts), socket.gethostname()))
    raise InconsistentRanks(difference(*zip(*gathered, strict=True)))


def difference(facts: Sequence[Facts], hosts: Sequence[str]) -> str:
    """A line that names each differing fact, with the ranks (and hosts) that have each value."""
    names = dict.fromkeys(name for own in facts for name in own)
    parts = []
    for name in names:
        ranks: dict[str, list[int]] = {}
        for rank, own in enumerate(facts):
            ranks.setdefault(own.get(name, "missing"), []).append(rank)
        if len(ranks) > 1:
            values = (f"{value} on {_ranks_text(where, hosts)}" for value, where in ranks.items())
            parts.append(f"{name} is {', '.join(values)}")
    return f"the ranks of this job differ: {'; '.join(parts)}; all must have the same"


def _ranks_text(ranks: list[int], hosts: Sequence[str]) -> str:
    """``ranks 0-2, 5 (host a)``; of several hosts only the first is named."""
    runs: list[tuple[int, int]] = []
    for rank in ranks:
        follows = runs and rank == runs[-1][1] + 1
        runs.append((runs.pop()[0] if follows else rank, rank))
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    names = list(dict.fromkeys(hosts[rank] for rank in ranks))
    where = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return f"{'ranks' if len(ranks) > 1 else 'rank'} {', '.join(texts)} ({where})"
