"""The best step of a grid, on problems where it is known."""

import json

import numpy as np
import pytest

import mpisim
from mpisim.analysis.tune import CRITERIA, best, table
from mpisim.core.errors import InputError
from tests.helpers import forged
from tests.runs.sweep.support import run, write

# One row a_1 = (2), y = 2: f(x) = (2 x - 2)^2 / 2, L = 4. Gradient descent with gamma = c / L
# multiplies x - 1 by 1 - c: c = 1 is exact after a step, c and 2 - c alike, c = 2 circles, c > 2
# diverges.
BASE = """
problem = {{ name = "least-squares", data = "{data}", workers = 1 }}
method = {{ name = "gd", stepsize = "theory" }}
[run]
rounds = 40
"""


@pytest.fixture
def base(tmp_path):
    (tmp_path / "one.libsvm").write_text("2 1:2\n")
    return BASE.format(data=tmp_path / "one.libsvm")


COSTS = [name for name, criterion in CRITERIA.items() if criterion.cost]


def test_the_best_multiple(base, tmp_path):
    points = run(write(tmp_path, "multiples = [0.5, 1.1, 1.9]", base), tmp_path / "logs")
    for criterion in CRITERIA.keys() - COSTS:
        [choice] = best(points, criterion)
        assert [c.step for c in choice.candidates] == [0.5, 1.1, 1.9]
        assert choice.theory and choice.best.step == 1.1 and not choice.edge
    [choice] = best(points[:1], "mean")
    # |grad f(x^k)|^2 = 16 * 4^-k, rows 4 to 40 of 41
    expected = np.mean(np.log10(16.0) - np.arange(4, 41) * np.log10(4.0))
    assert choice.best.score == pytest.approx(expected, rel=1e-12)
    assert not choice.edge  # there was nothing to choose from


def test_mean_and_final_differ_where_they_must(base, tmp_path):
    """A step may be better on the way and worse at the end; few bad rounds outweigh many good."""
    points = run(write(tmp_path, "method.stepsize = [0.1, 0.2]", base), tmp_path / "logs")
    for point, values in zip(points, (np.r_[[1e-9] * 40, 1e-2], [1e-3] * 41), strict=True):
        with forged(point.log) as log:
            log["rounds/grad_norm_sq"][:] = values
    assert best(points, "mean")[0].best.step == 0.1
    assert best(points, "final")[0].best.step == 0.2
    chosen = best(points, "uniform")[0]
    assert [c.score for c in chosen.candidates] == pytest.approx([-9, -3], rel=1e-6)


def test_a_loss_below_0_has_no_logarithm(make_log):
    """Every row below 0 would count as 1e-308."""
    logs = [make_log(stepsize=s, columns={"loss": s - np.arange(51.0)}) for s in (0.1, 0.2)]
    with pytest.raises(InputError, match=r"log1\.h5: loss falls to -49\.9 and .* choose loss"):
        best(logs, "mean-loss")
    assert best(logs, "loss")[0].best.step == 0.1


# Each round multiplies |grad f|^2 = 16 by (1 - c)^2; a message is one float32.
@pytest.mark.parametrize(("criterion", "unit"), [("rounds", 1), ("bits", 32)])
def test_the_cost_of_an_accuracy(criterion, unit, base, tmp_path):
    base += "stop = { grad_norm_sq = 0.02 }\n"
    points = run(write(tmp_path, "multiples = [0.01, 0.25, 0.6, 1.5]", base), tmp_path / "logs")
    [choice] = best(points, criterion)
    result = {c.step: c.score for c in choice.candidates}
    # 16 (1 - c)^(2 k) <= 0.02
    rounds = {c: int(np.ceil(np.log(16 / 0.02) / -np.log((1 - c) ** 2))) for c in (0.25, 0.6, 1.5)}
    assert result == {0.01: None, **{c: k * unit for c, k in rounds.items()}}
    assert choice.best.step == 0.6
    assert choice.candidates[0].out == "seed 1 was stopped by rounds"
    with pytest.raises(InputError, match=r"run\.stop\.grad_norm_sq ends the runs at unequal costs"):
        best(points, "final")


def test_a_criterion_that_does_not_fit_is_refused_before_anything_runs(base, tmp_path):
    file = write(tmp_path, "multiples = [0.5]", base)
    with pytest.raises(InputError, match=r"run\.stop has no accuracy to reach"):
        mpisim.tune(file, tmp_path / "logs", criterion="bits")
    assert not (tmp_path / "logs").exists()
    points = run(file, tmp_path / "logs")
    for cost in COSTS:
        with pytest.raises(InputError, match="has no accuracy to reach, such as grad_norm_sq; ch"):
            best(points, cost)


@pytest.mark.parametrize(
    ("several", "lost", "side"),
    [
        ([0.25, 0.5, 0.75], -1, "larger"),
        ([1.25, 1.5, 1.75], 0, "smaller"),
        ([0.5, 0.75], 1, "smaller and larger"),
    ],
)
def test_a_step_that_is_not_complete_does_not_close_the_grid(several, lost, side, base, tmp_path):
    points = run(write(tmp_path, f"multiples = {several}", base), tmp_path / "logs")
    with forged(points[lost].log) as log:
        log.attrs["status"] = "running"
    choices = best(points)
    assert choices[0].edge and f"edge of the grid; try {side} ones" in table(choices, "mean")


SAMPLE = BASE.format(data="sample").replace('"gd"', '"dcgd"')
SAMPLE += "[compressor]\nname = 'randk'\nk = 60\n"


def test_one_bad_seed_is_enough_to_be_out(tmp_path):
    sweep = "multiples = [0.5, 1]\nrun.seed = [1, 2]\ncompressor.k = [60, 100]\nrun.rounds = [9]"
    points = run(write(tmp_path, sweep, SAMPLE), tmp_path / "logs")
    choices = best(points)
    assert [c.settings for c in choices] == [{"compressor.k": 60}, {"compressor.k": 100}]
    assert all(len(c.logs) == 2 for choice in choices for c in choice.candidates)
    winner = choices[0].best

    def out(logs):
        """Why the winner is out; the other choice is as before."""
        spoilt, other = best(logs)
        assert spoilt.best.step != winner.step and other.best == choices[1].best
        return [c.out for c in spoilt.candidates if c.score is None]

    with forged(winner.logs[1]) as log:
        log["rounds/grad_norm_sq"][3] = np.nan
    assert out(points) == ["seed 2 is not finite"]
    assert out([p.log for p in points if p.log != winner.logs[1]]) == ["seed 2 is missing"]
    with forged(winner.logs[1]) as log:
        log.attrs["status"] = "running"
    assert out(points) == ["seed 2 is not complete"]


def test_the_command(base, tmp_path, command):
    file, logs = write(tmp_path, "", base), tmp_path / "logs"
    words = ["tune", file, "--out", logs, "--multiples"]
    output = command(*words, "0.25,0.5")
    assert "over the last 90% of the rows" in output
    assert "*     0.5 x theory" in output and "edge of the grid; try larger" in output
    output = command(*words, "0.25,0.5,1.25,1.9", "--criterion", "loss")
    assert "2 of them complete before" in output and "warning" not in output
    content = json.loads((logs / "tune.json").read_text())
    assert content["criterion"] == "loss" and content["choices"][0]["best"]["step"] == 1.25
    line = command(*words, "0.5,1", "--set", "method.stepsize=0.1", code=2)
    assert '--multiples: of method.stepsize = "theory", which no point has' in line
