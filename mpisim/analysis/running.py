"""Running from Python: a run whose result can be drawn and shown, and tuning."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis import tune as tuning
from mpisim.analysis.formatting import html
from mpisim.analysis.plot import draw
from mpisim.comm.communicators import all_ranks
from mpisim.comm.job import on_first
from mpisim.core.schema import parse_toml
from mpisim.runs import api
from mpisim.runs.log.reader import Log


class Result(api.Result):
    __doc__ = api.Result.__doc__

    def as_log(self) -> Log:
        """The same as a log that was read, for figures and tables."""
        config = parse_toml(self.attributes["config"], "the experiment")
        path = self.log or Path("result")
        return Log(path, self.attributes, self.rows, {}, {}, {}, config)

    def plot(self, x: str = "bits_up", y: str = "grad_norm_sq", **options: Any) -> Any:
        """Draw column ``y`` against ``x``, bits by worker; options as for `mpisim.plot`."""
        return draw([self.as_log()], x, y, **options)

    def _repr_html_(self) -> str:
        return html(["", ""], [[name, value] for name, value in self.summary().items()])


@functools.wraps(api.run)
def run(*args: Any, **options: Any) -> Result:
    return Result(**vars(api.run(*args, **options)))


class Tuned(Sequence[tuning.TunedSetting]):
    """The best step of each setting. Printed, it is what ``mpisim tune`` prints."""

    def __init__(self, settings: Sequence[tuning.TunedSetting], criterion: str):
        self.settings, self.criterion = settings, criterion

    def __len__(self) -> int:
        return len(self.settings)

    def __getitem__(self, i: Any) -> Any:
        return self.settings[i]

    def __repr__(self) -> str:
        return tuning.table(self.settings, self.criterion)


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

    source, folder, settings, options : as for `mpisim.sweep`, also ``jobs``
    criterion : a key of `mpisim.analysis.tune.CRITERIA`
    multiples : of the theory step to try, in place of the grid's
    """
    used = comm or all_ranks()
    more = [f"sweep.multiples={[float(one) for one in multiples]}"] if multiples else []
    points = api.sweep(source, folder, used, [*settings, *more], **options)
    return Tuned(on_first(used, lambda: tuning.best(points, criterion)), criterion)
