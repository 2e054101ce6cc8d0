"""The key run.ranks, on one rank; tests/comm/subsets has it on several."""

from types import SimpleNamespace

import numpy as np
import pytest

from mpisim.analysis.run_groups import group_runs
from mpisim.comm import side_channel
from mpisim.runs.experiment import parse
from mpisim.runs.labels import ranks_of
from mpisim.runs.log.reader import read
from mpisim.runs.setup import ProblemCache
from tests.helpers import run_tables, table

GD = {"name": "gd", "stepsize": 0.1}


@pytest.mark.parametrize(
    ("workers", "settings", "ranks"),
    [
        (6, {}, None),
        (6, {"ranks": 2}, 2),
        (6, {"ranks": "workers"}, 6),
        (6, {"ranks": "workers", "layout": "dedicated"}, 7),
        (6, {"ranks": 2, "layout": "dedicated"}, 2),
        (None, {"ranks": "workers"}, None),  # a worker for each rank: as many as there are
    ],
)
def test_how_many(workers, settings, ranks):
    experiment = parse(table(GD, workers=6, **settings))
    if workers is None:
        tables = table(GD, **settings)
        del tables["problem"]["workers"]
        experiment = parse(tables)
    assert ranks_of(experiment) == ranks
    if settings.get("ranks") == "workers" and ranks:
        blocks = np.diff(side_channel.starts(6, ranks, experiment.run.layout))
        assert blocks.max() == 1 and blocks.sum() == 6


def test_ranks_are_no_part_of_what_is_computed(tmp_path):
    """A run may be continued with another number, and curves over bits put runs together."""
    log, other = tmp_path / "x.h5", tmp_path / "y.h5"
    run_tables(table(GD, rounds=3), log)
    run_tables(table(GD, rounds=5, ranks=1), log, resume=True)
    run_tables(table(GD, rounds=5), other)
    logs = [read(path) for path in (log, other)]
    assert "ranks = 1\n" in logs[0].attrs["config"]
    assert len(group_runs(logs)) == 1


def test_ranks_that_keep_a_problem_must_all_keep_it():
    """Rank 3 has workers 3 and 4 in both layouts, but the others do not have the same ones."""
    experiment, cache = parse(table(GD, workers=5)), ProblemCache()
    stars = [
        SimpleNamespace(n=5, rank=3, first=3, m=2, starts=side_channel.starts(5, 4, layout))
        for layout in ("shared", "dedicated", "dedicated")
    ]
    problems = [cache.problem(experiment, star) for star in stars]
    assert problems[0] is not problems[1] and problems[1] is problems[2]
