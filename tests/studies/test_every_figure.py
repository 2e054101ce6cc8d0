"""Each figure of each study judges and draws logs of its grid, made by hand."""

import tomllib
from pathlib import Path

import numpy as np

from mpisim.analysis.claims import Verdict
from mpisim.analysis.study import Grid, Grids
from mpisim.analysis.study.figure import studies
from mpisim.runs.experiment import parse
from mpisim.runs.labels import flatten
from mpisim.runs.log.reader import Log
from mpisim.runs.log.schema import columns
from mpisim.runs.metrics import METRICS
from tests.helpers import some_of

ROOT = Path(__file__).parents[2]
MOST = 150  # logs of a grid
ROUNDS = np.arange(11)
GROWING = ("bits", "framing", "paper", "messages", "oracle", "time_", "simulated_")
NAMES = [name for name, *_ in columns(True)]
NAMES += [name for kind in METRICS.values() for name, *_ in kind.columns]
NAMES += ["test_loss", "test_grad_norm_sq", "train_accuracy", "test_accuracy"]
# They need each country and deadline, two steps, 900 rounds, or a minute.
NOT_BY_HAND = {"fleet-map", "fleet-countries", "fleet-deadline"}
NOT_BY_HAND |= {"permk-table5", "permk-groups", "fleet-hundred"}
FIGURES = {
    study.full_name(figure): (study, figure)
    for study in studies(ROOT / "run")
    for figure in study.figures.values()
    if isinstance(figure.source, Grid | Grids)
}


def log_of(number, point):
    """What falls halves each round; what grows does so at a speed of this log alone."""
    config = tomllib.loads(parse(point).to_toml())
    step, seed = config["method"]["stepsize"], config["run"]["seed"]
    multiple = 1.0 if step == "theory" else step
    multiple = multiple["theory"] if isinstance(multiple, dict) else multiple
    n = config["problem"].get("workers", 5)
    growing = (number % 7 + 1.0) * (ROUNDS + 1)
    names = NAMES + ["simulated_seconds"] * ("fleet" in config)
    values = {name: growing if name.startswith(GROWING) else 0.5**ROUNDS for name in names}
    values |= {name: 0.9 - 0.8 * 0.5**ROUNDS for name in NAMES if name.endswith("accuracy")}
    attrs = {"workers": n, "dimension": 100, "seed": seed, "stepsize": multiple, "status": "done"}
    attrs |= {"method": config["method"]["name"], "compressor": config["compressor"]["name"]}
    attrs |= {"method_p": 0.1, "method_warmup": 2}
    rows = {"rows": np.full(n, 200)}
    return Log(Path(f"{number}.h5"), attrs, values | {"round": ROUNDS}, rows, {}, config)


def points_of(study, figure):
    """A point at quick of each setting: the middle one of its seeds and steps."""
    settings = {}
    for grid in figure.source.parts():
        for point in grid.all_points(study.folder, "quick")[1]:
            of = {k: v for k, v in flatten(point).items() if not k.startswith("method.stepsize")}
            settings.setdefault(repr(of | {"run.seed": 0}), []).append(point)
    return [points[(len(points) - 1) // 2] for points in settings.values()][:MOST]


@some_of(6, name=sorted(FIGURES.keys() - NOT_BY_HAND))
def test_it_judges_and_draws(name):
    study, figure = FIGURES[name]
    logs = [log_of(*item) for item in enumerate(points_of(study, figure))]
    for claim in figure.claims(logs):
        assert claim.verdict in Verdict and claim.claim and claim.source
    assert figure.draw(logs).axes
