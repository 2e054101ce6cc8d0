"""Studies: a folder with grids of runs and a list of figures, drawn from logs, with claims."""

from mpisim.analysis.study.figure import Figure, Job, Measurement, Study
from mpisim.analysis.study.grids import Grid, Grids
from mpisim.analysis.study.lines import Line, Lines, compare_steps, value_of, with_steps
from mpisim.analysis.study.load import find, load, quotes, studies
from mpisim.analysis.study.tuning import (
    BestSteps,
    best_steps,
    by_data,
    complete_logs,
    data_sets,
    grouped,
)
