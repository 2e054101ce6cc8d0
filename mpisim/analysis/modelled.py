"""An axis of modelled seconds: a log on links that its run did not have."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from mpisim.analysis.curves import Axis
from mpisim.analysis.link_model import Links, Traffic, seconds
from mpisim.comm.side_channel import starts, worker_ranks
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log


@dataclasses.dataclass(frozen=True)
class ModelledSeconds(Axis):
    """The measured seconds plus those that the bits would take on ``links``."""

    links: Links = dataclasses.field(default_factory=Links)

    def values(self, log: Log) -> np.ndarray:
        """Shape (rows,); `InputError` where a column is missing or the ranks do not fit."""
        return seconds(self.links, traffic(log))

    def label(self, log: Log) -> str:
        return f"modelled seconds, {self.links}"


def assumption(logs: Iterable[Log]) -> str:
    """A line about logs that do not say how many messages were sent; empty where all do."""
    older = [log.path for log in logs if "messages_up" not in log.columns]
    if not older:
        return ""
    more = f" and {len(older) - 1} more" if len(older) > 1 else ""
    return f"{older[0]}{more}: no column messages_up: assumes a message of each worker a gather"


def traffic(log: Log) -> Traffic:
    """The traffic of a log, as the model needs it."""
    framing = log.column("framing_bits_up")
    ranks = int(log.attrs.get("ranks", 1))
    layout = str(log.config.get("run", {}).get("layout", "shared"))
    if not 1 <= worker_ranks(ranks, layout) <= log.n:
        raise InputError(f"{log.path}: attribute ranks = {ranks} for {log.n} workers")
    return Traffic(
        rounds=log.column("round"),
        seconds=log.column("seconds"),
        bits_up=log.column("bits_up") + framing,
        bits_down=log.column("bits_down") + log.column("framing_bits_down"),
        bits_up_max=log.column("bits_up_max") + framing / log.n,
        workers=np.diff(starts(log.n, ranks, layout)),
        messages_up=log.column("messages_up") if "messages_up" in log.columns else None,
    )
