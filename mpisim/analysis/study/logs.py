"""The logs that a figure shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log, read_all
from mpisim.runs.sweep.points import SUMMARY, read_summary

T = TypeVar("T")


def complete_logs(folder: Path) -> tuple[list[Log], list[str]]:
    """The complete logs of a folder, and a line for each run that is not drawn.

    They are those of the last sweep in the folder and in each folder below it. Without the summary
    of a sweep they are all logs of the folder. `InputError` if there is none.
    """
    logs, missing = swept_logs(folder)
    done = [log for log in logs if log.attrs.get("status") == "done"]
    if not done:
        raise InputError(f"{folder}: no complete log of a run there")
    left = [f"{log.path}: not drawn, {log.attrs.get('status')}" for log in logs if log not in done]
    left += [f"{path}: not drawn, not run" for path in missing]
    return done, left


def swept_logs(folder: Path) -> tuple[list[Log], list[Path]]:
    """All logs of the sweeps that `complete_logs` reads, and the paths of missing ones."""
    swept = [summary.parent for summary in sorted(folder.glob(f"**/{SUMMARY}"))]
    paths = [one / Path(p.log).name for one in swept for p in read_summary(one) if p.log]
    if not swept:
        paths = sorted(folder.glob("*.h5"))
    there = [path for path in paths if path.is_file()]
    return read_all(there), [path for path in paths if path not in there]


def by_data(items: dict[tuple, T], order: Sequence[str]) -> dict[tuple, T]:
    """Sorted by keys that begin with a data set: those of ``order`` first, in that order."""
    place = {name: i for i, name in enumerate(order)}
    return {
        key: items[key] for key in sorted(items, key=lambda k: (place.get(k[0], len(place)), k))
    }


def data_sets(items: Iterable[tuple]) -> list[str]:
    """The data sets that the keys begin with, each once."""
    return list(dict.fromkeys(key[0] for key in items))


def grouped(
    logs: Iterable[Log], key: Callable[[Log], tuple], order: Sequence[str]
) -> dict[tuple, list[Log]]:
    """{key(log): logs}, sorted as `by_data` does."""
    items: dict[tuple, list[Log]] = {}
    for log in logs:
        items.setdefault(key(log), []).append(log)
    return by_data(items, order)
