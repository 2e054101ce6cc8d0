"""How a run ended."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mpisim.runs.evaluation import Row


@dataclasses.dataclass(frozen=True)
class End:
    """How a run ended: the status, the last row, and its x^k, shape (d,).

    before : the log was complete, and nothing ran
    stopped_by : "rounds", or the condition of ``run.stop`` that the last row met; empty unless the
        run is done

    Rank 0 has the log's attributes and, with ``Output.keep``, its columns; other ranks have none.
    """

    status: str
    row: Row
    x: np.ndarray
    stopped_by: str = ""
    columns: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    before: bool = False
