"""The key run.ranks, on one rank; tests/comm/subsets has it on several."""

from types import SimpleNamespace

import numpy as np
import pytest

from mpisim.comm import side_channel
from mpisim.runs.experiment import parse
from mpisim.runs.preview import ranks_of
from mpisim.runs.setup import ProblemCache
from tests.helpers import table

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


def test_ranks_that_keep_a_problem_must_all_keep_it():
    """Rank 3 has workers 3 and 4 in both layouts, but the others do not have the same ones."""
    experiment, cache = parse(table(GD, workers=5)), ProblemCache()
    stars = [
        SimpleNamespace(n=5, rank=3, first=3, m=2, starts=side_channel.starts(5, 4, layout))
        for layout in ("shared", "dedicated", "dedicated")
    ]
    problems = [cache.problem(experiment, star) for star in stars]
    assert problems[0] is not problems[1] and problems[1] is problems[2]
