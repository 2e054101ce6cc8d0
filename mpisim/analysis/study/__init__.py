"""Studies: a folder with grids of runs and a list of figures, drawn from logs, with claims."""

from mpisim.analysis.study.figure import Figure, Job, Measurement, Study, find, load, quotes
from mpisim.analysis.study.grids import Grid, Grids
from mpisim.analysis.study.tuning import (
    QUESTION,
    BestSteps,
    Line,
    Lines,
    best_steps,
    by_data,
    compare_steps,
    complete_logs,
    data_sets,
    grouped,
    value_of,
    with_steps,
)
