"""Reading, drawing and predicting from Python: what `import mpisim` offers of this room."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis import costs, log_files
from mpisim.analysis.curves import SENT
from mpisim.analysis.log_files import PathLike
from mpisim.analysis.plot import check_output, draw, save
from mpisim.analysis.rows import all_rows
from mpisim.core.errors import library
from mpisim.runs.log.reader import Log


class Runs(Sequence[Log]):
    """Logs of runs, in the order in which they were named."""

    def __init__(self, logs: Iterable[Log]):
        self.logs = list(logs)

    def __len__(self) -> int:
        return len(self.logs)

    def __getitem__(self, i: Any) -> Any:
        return Runs(self.logs[i]) if isinstance(i, slice) else self.logs[i]

    def __repr__(self) -> str:
        return f"<{len(self)} runs: {', '.join(str(log.path) for log in self.logs)}>"

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each logged round of each run. Needs pandas.

        The columns are those that `mpisim.analysis.rows.all_rows` describes.
        """
        pandas = library("pandas", "pandas", "to_pandas()")
        return pandas.DataFrame(all_rows(self.logs))


def load(paths: PathLike | Iterable[PathLike]) -> Runs:
    """Read logs, finished or not.

    paths : a log, a folder of logs, a pattern such as "logs/*.h5", or several of these

    Of several, one that cannot be read is passed over, with a line on standard error. Raises
    `InputError` for a file that is missing, and where there is no log.
    """
    return Runs(log_files.load(paths))


def plot(
    paths: PathLike | Iterable[PathLike],
    x: str = "bits_up",
    y: str = "grad_norm_sq",
    output: PathLike | None = None,
    **options: Any,
) -> Any:
    """Draw column ``y`` of logs against column ``x``; returns the matplotlib figure.

    ``output``: a .png, .pdf or .svg to write, too. Options: those of `mpisim.analysis.plot.draw`.
    """
    if output is not None:
        check_output(Path(output))
    figure = draw(log_files.load(paths), x, y, **options)
    if output is not None:
        save(figure, Path(output))
    return figure


def table(
    paths: PathLike | Iterable[PathLike],
    target: float | str,
    y: str = "grad_norm_sq",
    framing: bool = False,
) -> list[costs.TargetCost]:
    """The rounds, bits and seconds of each log until it first meets a target.

    target : a level of column ``y``, or a text as of ``mpisim show --target``: "loss<=0.1"
    framing : count headers, lengths and padding with the payload
    """
    text = target if isinstance(target, str) else f"{y}={float(target)!r}"
    wanted, sent = costs.parse(text, "target"), dataclasses.replace(SENT, framing=framing)
    return [costs.cost_to_reach(log, wanted, sent=sent) for log in load(paths)]


def guarantees(experiment: Any, epsilon: float = 1e-2, comm: Any = None) -> str:
    """What the theorems say of an experiment: what ``mpisim theory`` prints. Collective."""
    from mpisim.analysis.theory_report import report
    from mpisim.comm.communicators import all_ranks

    return report(experiment, epsilon, comm or all_ranks())
