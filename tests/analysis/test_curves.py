"""Mean and band over seeds, and what the axes show."""

import numpy as np
import pytest

from mpisim.analysis.curves import Axis, over_seeds, points
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read

ROUND = Axis("round", log=False)
Y = Axis("grad_norm_sq", log=True)


def test_mean_is_geometric_and_band_one_deviation_of_the_log(make_log):
    logs = [read(make_log(seed=i, rate=r)) for i, r in enumerate((0.1, 0.2, 0.6))]
    curve = over_seeds(logs, ROUND, Y)
    k = np.arange(51)
    np.testing.assert_allclose(curve.y, np.exp(-0.3 * k), rtol=1e-12)
    deviation = np.std([0.1, 0.2, 0.6], ddof=1)
    np.testing.assert_allclose(curve.high / curve.y, np.exp(deviation * k), rtol=1e-10)
    np.testing.assert_allclose(curve.y / curve.low, np.exp(deviation * k), rtol=1e-10)


def test_runs_with_other_x_meet_on_a_common_grid(make_log):
    """y = x^-2 whatever x a run was logged at: the mean must be the same law where both are."""
    logs = []
    for seed, factor in enumerate((1.0, 1.7)):
        bits = 5 * factor * 100 * np.arange(1, 52)
        columns = {"bits_up": bits, "grad_norm_sq": (bits / 5) ** -2.0}
        logs.append(read(make_log(seed=seed, columns=columns)))
    curve = over_seeds(logs, Axis("bits_up", log=True), Y)
    assert curve.x[0] == pytest.approx(100) and curve.x[-1] == pytest.approx(5100)
    np.testing.assert_allclose(curve.y, 1 / (curve.x * np.maximum(curve.x, 170)), rtol=1e-9)


def test_the_mean_begins_with_the_run_that_begins_first(make_log):
    """Seconds before row 0 are 1, 3 and 9. Until then a run is at its start; later it falls by 1
    every second, so each is max(0, x - start) below its start of 100."""
    starts = np.array([1.0, 3.0, 9.0])
    k = np.arange(21)
    phases = [f"time_{p}" for p in ("compute", "compress", "encode", "communicate", "decode")]
    logs = [
        read(
            make_log(
                seed=int(start),
                rounds=20,
                columns={"grad_norm_sq": 100.0 - k, "time_other": start + k},
                drop=[*phases, "time_server", "time_optimizer"],
            )
        )
        for start in starts
    ]
    for log_x in (True, False):
        curve = over_seeds(logs, Axis("seconds", log=log_x), Axis("grad_norm_sq", log=False))
        assert (curve.x[0], curve.x[-1]) == (pytest.approx(1), pytest.approx(21))
        fallen = np.maximum(0, curve.x[:, None] - starts)
        atol = 0.1 if log_x else 1e-9  # between rows, curves are straight in log x
        np.testing.assert_allclose(curve.y, 100 - fallen.mean(axis=1), atol=atol)
        assert curve.y[0] == curve.high[0] == 100


def test_points_that_cannot_be_shown_are_left_out(make_log):
    values = np.array([1.0, 0.0, np.nan, -1.0, np.inf, 0.5])
    log = read(make_log(rounds=5, columns={"grad_norm_sq": values}))
    assert points(log, ROUND, Y)[0].tolist() == [0, 5]
    assert points(log, ROUND, Axis("grad_norm_sq", False))[0].tolist() == [0, 1, 3, 5]


def test_a_mean_is_over_seeds_alone(make_log):
    one, two = (read(make_log(seed=seed, rate=0.1 * seed)) for seed in (1, 2))
    curve = over_seeds([one, two, one], ROUND, Y)
    np.testing.assert_array_equal(curve.y, over_seeds([one, two], ROUND, Y).y)
    other = read(make_log(seed=3, stepsize="0.5"))
    with pytest.raises(InputError, match=r"differ in method\.stepsize: theory and 0\.5"):
        over_seeds([one, two, other], ROUND, Y)
    over_seeds([one, two, other], ROUND, Y, over=("method.stepsize",))
    other = read(make_log(seed=3, attrs={"ranks": 7}))
    over_seeds([one, other], ROUND, Y)
    with pytest.raises(InputError, match="differ in ranks: 2 and 7"):
        over_seeds([one, other], Axis("seconds", log=True), Y)
