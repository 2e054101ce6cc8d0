"""Where the ranks of a run are: their hosts, and the cores that they may use."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Iterable
from pathlib import Path

from mpisim.core.cores import usable

BOOT = Path("/proc/sys/kernel/random/boot_id")  # Linux: one for each machine that runs


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a rank is.

    host : its name
    machine : the same for all hosts that share cores, as containers and network namespaces do
    cores : that the rank may use
    """

    host: str
    machine: str
    cores: frozenset[int]


def here() -> Place:
    """The place of this rank."""
    host = socket.gethostname()
    try:
        machine = BOOT.read_text(encoding="ascii").strip()
    except OSError:
        machine = host
    return Place(host, machine, usable())


def hosts(places: Iterable[Place]) -> str:
    """The names of the hosts."""
    return ", ".join(sorted({place.host for place in places}))


def oversubscribed(places: Iterable[Place]) -> bool:
    """Whether a machine has more ranks than they have cores."""
    machines: dict[str, list[frozenset[int]]] = {}
    for place in places:
        machines.setdefault(place.machine, []).append(place.cores)
    return any(len(ranks) > len(frozenset.union(*ranks)) for ranks in machines.values())
