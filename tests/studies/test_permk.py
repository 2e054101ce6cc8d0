"""The PermK paper's figures of quadratic tasks and its Appendix M, from real short runs."""

from contextlib import suppress
from itertools import product

import numpy as np
import pytest

from mpisim.analysis.claims import at_one_target, needed
from mpisim.analysis.study import find
from mpisim.analysis.study.tuning import rises
from mpisim.core.errors import Diverged
from mpisim.runs.log.reader import read
from run.permk import groups, quadratic, quadratic_claims
from tests.helpers import run_tables

pytestmark = pytest.mark.usefixtures("any_grid")
SIZES, NOISES, MULTIPLES = (4, 40), (0.0, 0.8), (1.0, 8.0, 512.0)
MARINA = {"name": "marina", "theorem": "permk", "smoothness": "published"}
PAIRS = {
    "randk": (MARINA, 20),
    "permk": (MARINA, None),
    "topk": ({"name": "ef21", "smoothness": "published"}, 20),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """d = 20, so that n = 4 is below it and n = 40 above."""
    folder = tmp_path_factory.mktemp("permk")
    for n, noise, name, multiple in product(SIZES, NOISES, PAIRS, MULTIPLES):
        method, d = PAIRS[name]
        problem = {"name": "quadratic", "workers": n, "dimension": 20, "noise": noise}
        tables = {
            "problem": problem | {"lambda": 1e-3},
            "method": method | {"stepsize": {"theory": multiple}},
            "compressor": {"name": name} | ({"k": -(-d // n)} if d else {}),
            "run": {"rounds": 40},
        }
        with suppress(Diverged):  # a step of 512 x theory may
            run_tables(tables, folder / f"{n}-{noise}-{name}-{multiple}.h5")
    every = [read(path) for path in sorted(folder.glob("*.h5"))]
    return [log for log in every if log.attrs["status"] == "done"]


def share(log):
    values = log.column("grad_norm_sq")
    return values[-1] / values[0]


def first(log):
    return log.column("grad_norm_sq")[0]


def test_the_best_step_comes_first_and_what_got_nowhere_is_out(logs):
    result = quadratic.tuned(logs)
    assert list(result) == [(4, 0.0), (4, 0.8), (40, 0.0), (40, 0.8)]
    for (n, noise), by_name in result.items():
        assert set(by_name) == set(PAIRS)
        for name, steps in by_name.items():
            rivals = [
                log
                for log in logs
                if log.config["problem"]["workers"] == n
                and log.config["problem"]["noise"] == noise
                and log.config["compressor"]["name"] == name
                and share(log) < 1
                and not rises(log.column("grad_norm_sq"))
            ]
            runs = [log for [log] in steps.steps.values()]  # one seed
            if steps.target is not None:
                bits = [needed(log, quadratic.BITS, steps.target * first(log)) for log in rivals]
                by_name = needed(runs[0], quadratic.BITS, steps.target * first(runs[0]))
                assert by_name == min(bits) < np.inf
            far = [log for log in rivals if share(log) <= quadratic.FAR]
            largest = max((log.attrs["stepsize"] for log in far), default=0)
            assert quadratic.tolerated(steps) == largest


def test_claims_compare_bits_at_a_fixed_target(logs):
    result = quadratic.tuned(logs)
    one = quadratic_claims.compared(result, (4, 0.8), "permk", "randk")
    less, more = (result[4, 0.8][name].logs[0] for name in ("permk", "randk"))
    target, [ratio] = at_one_target([one])
    level = target * less.column("grad_norm_sq")[0]
    assert level > max(log.column("grad_norm_sq").min() for log in (less, more))
    bits = [
        log.column("paper_bits_up")[np.argmax(log.column("grad_norm_sq") <= level)] / 4
        for log in (less, more)
    ]
    assert ratio == pytest.approx(bits[1] / bits[0])
    assert one.where == "n = 4, noise 0.8"


def test_two_groups(tmp_path):
    """Appendix M in small: n = 8, d = 16, with and without groups, at two steps each."""
    for number in (1, 2):
        for multiple in (1.0, 2.0):
            tables = {
                "problem": {"name": "quadratic", "workers": 8, "dimension": 16, "lambda": 1e-3}
                | {"factors": [0.1, 1.9]},
                "method": {"name": "marina", "stepsize": {"theory": multiple}},
                "compressor": {"name": "permk", "groups": number},
                "run": {"rounds": 150},
            }
            run_tables(tables, tmp_path / f"{number}-{multiple}.h5")
    logs = [read(path) for path in sorted(tmp_path.glob("*.h5"))]
    result = groups.choose(logs)
    assert set(result[groups.THEORY]) == set(result[groups.BEST]) == {1, 2}
    one, two = (result[groups.THEORY][k][1][0].attrs["stepsize"] for k in (1, 2))
    assert two > 1.5 * one  # Theorem 10: L_± does not count
    [claim] = groups.claims(logs)
    assert [item.where for item in claim.evidence] == [groups.THEORY, groups.BEST]
    assert claim.evidence[0].verdict == claim.verdict == "holds"
    assert [item.counts for item in claim.evidence] == [True, False]
    figure = find("permk-groups")[1].draw(logs)
    assert [len(panel.get_lines()) for panel in figure.axes] == [2, 2]
