"""Logs of the same experiment with a smaller budget, which a point of a sweep may go on from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpisim.core import toml
from mpisim.core.errors import InputError
from mpisim.runs import identity
from mpisim.runs.experiment import Experiment, Run
from mpisim.runs.log import reader
from mpisim.runs.log.isolated import DAMAGE
from mpisim.runs.tables import without_budget


class Earlier:
    """The logs in a folder, by their experiments without the budget.

    attributes : of the root of each log, by its path
    """

    def __init__(self, attributes: dict[Path, dict[str, Any]]):
        self._logs: dict[str, list[Path]] = {}
        for path, found in attributes.items():
            try:
                key = without_budget(toml.loads(found["config"], str(path)))
            except (InputError, *DAMAGE):
                continue
            self._logs.setdefault(key, []).append(path)

    def of(self, experiment: Experiment) -> Path | None:
        """The longest log that a run of the experiment may go on from; None if there is none.

        Logs by the code that executes the experiment now come first.
        """
        tables = toml.loads(experiment.to_toml(), "")
        logs = _readable(self._logs.get(without_budget(tables), []))
        fitting = [log for log in logs if _is_beginning(log, experiment.run)]
        code = identity.executed_by(experiment) if fitting else {}

        def worth(log: reader.Log) -> tuple[bool, int]:
            return identity.of_log(log.attrs) == code, int(log.columns["round"][-1])

        return max(fitting, key=worth).path if fitting else None


def _readable(paths: Sequence[Path]) -> list[reader.Log]:
    found = []
    for path in paths:
        try:
            found.append(reader.read(path))
        except InputError:
            continue
    return found


def _is_beginning(log: reader.Log, run: Run) -> bool:
    """Whether a run with this budget would have all rows of the log."""
    try:
        last, first = log.columns["round"][-1], run.stop.first_row(log.columns, log.n)
    except DAMAGE:
        return False
    return bool(last <= run.rounds) and first in (None, log.rows - 1)
