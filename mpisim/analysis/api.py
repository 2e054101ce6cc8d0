"""Running, tuning, reading, drawing, predicting: what `import mpisim` offers of this room."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis import costs, formatting, log_files
from mpisim.analysis import tune as tuning
from mpisim.analysis.log_files import Logs, PathLike, all_rows, selected
from mpisim.analysis.plot import check_output, draw, save
from mpisim.analysis.show import run_list
from mpisim.comm import links
from mpisim.comm.communicators import all_ranks
from mpisim.comm.job import on_first
from mpisim.core.errors import library
from mpisim.core.schema import parse_toml
from mpisim.runs import api
from mpisim.runs.log.reader import Log


class Runs(Sequence[Log]):
    """Logs of runs, in the order in which they were named.

    root : the folder in which tables give their paths; that of all unless given
    """

    def __init__(self, logs: Iterable[Log], root: Path | None = None):
        self.logs, self.root = list(logs), root

    def __len__(self) -> int:
        return len(self.logs)

    def __getitem__(self, i: Any) -> Any:
        return Runs(self.logs[i], self.root) if isinstance(i, slice) else self.logs[i]

    def __repr__(self) -> str:
        return formatting.table(*run_list(self.root, self.logs))

    def _repr_html_(self) -> str:
        return formatting.html(*run_list(self.root, self.logs))

    def to_pandas(self, every_setting: bool = False) -> Any:
        """A DataFrame with a row for each logged round of each run. Needs pandas.

        The columns are those that `mpisim.analysis.log_files.all_rows` describes: label, n, seed,
        status and the settings that vary, or with ``every_setting`` all, beside those of the logs.
        """
        pandas = library("pandas", "pandas", "to_pandas()")
        return pandas.DataFrame(all_rows(self.logs, self.root, every_setting))


def load(paths: PathLike | Iterable[PathLike]) -> Runs:
    """Read logs, finished or not.

    paths : a log, a folder of logs, a pattern such as "logs/*.h5", or several of these

    Of several, one that cannot be read is passed over, with a line on standard error. Raises
    `InputError` for a file that is missing, and where there is no log.
    """
    named = [paths] if isinstance(paths, PathLike) else list(paths)
    files = log_files.find(named)
    return Runs(log_files.readable(files)[0], log_files.folder_of(named, files))


def plot(
    paths: Logs,
    x: str = "bits_up",
    y: str = "grad_norm_sq",
    output: PathLike | None = None,
    **options: Any,
) -> Any:
    """Draw column ``y`` of logs against column ``x``; returns the matplotlib figure.

    ``paths``: as for `mpisim.load`, or the runs that it has read.
    ``output``: a .png, .pdf or .svg to write, too. Options: those of `mpisim.analysis.plot.draw`.
    """
    if output is not None:
        check_output(Path(output))
    figure = draw(log_files.load(paths), x, y, **options)
    if output is not None:
        save(figure, Path(output))
    return figure


def table(
    paths: Logs,
    target: float | str | Sequence[float | str],
    y: str = "grad_norm_sq",
    framing: bool = False,
    network: str | None = None,
    where: str | Sequence[str] = (),
    best: bool | str = False,
) -> costs.Costs:
    """The rounds, bits and seconds until the first row that meets a target: mean and median over
    the seeds, the number of runs, and how many reach it.

    paths : as for `mpisim.load`, or the runs that it has read
    target : a level of column ``y``, or a text as of ``mpisim show --target``: "loss<=0.1"; or
        several
    framing : count headers, lengths and padding with the payload
    network : model the seconds for it, such as "100mbit,1ms"
    where, best : which runs, as in `mpisim.analysis.log_files.selected`
    """
    on = None if network is None else links.parse(network)
    logs = selected(log_files.load(paths), where, best)
    return costs.Costs(logs, costs.targets(target, y), on, framing)


def guarantees(experiment: Any, epsilon: float = 1e-2, comm: Any = None) -> formatting.Text:
    """What the theorems say of an experiment: what ``mpisim theory`` prints. Collective."""
    from mpisim.analysis.theory_report import report

    return formatting.Text(report(experiment, epsilon, comm or all_ranks()))


class Result(api.Result):
    __doc__ = api.Result.__doc__

    def as_log(self) -> Log:
        """The same as a log that was read, for figures and tables."""
        config = parse_toml(self.attributes["config"], "the experiment")
        path = self.log or Path("result")
        return Log(path, self.attributes, self.rows, {}, {}, config)

    def plot(self, x: str = "bits_up", y: str = "grad_norm_sq", **options: Any) -> Any:
        """Draw column ``y`` against ``x``, bits by worker; options as for `mpisim.plot`."""
        return draw([self.as_log()], x, y, **options)

    def _repr_html_(self) -> str:
        return formatting.html(["", ""], [[name, value] for name, value in self.summary().items()])


@functools.wraps(api.run)
def run(*args: Any, **options: Any) -> Result:
    return Result(**vars(api.run(*args, **options)))


class Tuned(list[tuning.TunedSetting]):
    """The best step of each setting. Printed, it is what ``mpisim tune`` prints."""

    def __init__(self, settings: Sequence[tuning.TunedSetting], criterion: str):
        super().__init__(settings)
        self.criterion = criterion

    def __repr__(self) -> str:
        return tuning.table(self, self.criterion)


def tune(
    source: Any,
    folder: Any = None,
    criterion: str = tuning.DEFAULT,
    multiples: Sequence[float] = (),
    settings: Sequence[str] = (),
    comm: Any = None,
    **options: Any,
) -> Tuned:
    """Run what is missing of a grid of steps, and pick the best one of each setting. Collective.

    source, folder, settings, options : as for `mpisim.sweep`, also ``jobs`` and ``progress``
    criterion : a key of `mpisim.analysis.tune.CRITERIA`
    multiples : of the theory step to try, in place of the grid's
    """
    used = comm or all_ranks()
    more = [f"sweep.multiples={[float(one) for one in multiples]}"] if multiples else []
    every = [*settings, *more]
    on_first(used, lambda: tuning.require_fit(criterion, api.grid_of(source, every)[1]))
    points = api.sweep(source, folder, used, every, **options)
    return Tuned(on_first(used, lambda: tuning.best(points, criterion)), criterion)
