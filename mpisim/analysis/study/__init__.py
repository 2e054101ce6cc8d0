"""Studies: a folder with grids of runs and a list of figures, drawn from logs, with claims."""

from mpisim.analysis.study.base import Job
from mpisim.analysis.study.load import find, load, studies
from mpisim.analysis.study.logs import (
    best_run,
    best_runs,
    by_data,
    complete_logs,
    data_sets,
    grouped,
    tuned,
)
from mpisim.analysis.study.measurement import Measurement
from mpisim.analysis.study.sources import Grid, Grids
from mpisim.analysis.study.spec import Figure, Study

__all__ = ["Figure", "Grid", "Grids", "Job", "Measurement", "Study"]
__all__ += ["best_run", "best_runs", "by_data", "complete_logs", "data_sets", "grouped"]
__all__ += ["tuned"]
__all__ += ["find", "load", "studies"]
