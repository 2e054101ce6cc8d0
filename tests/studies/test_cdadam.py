"""CD-Adam's figures, from real short runs on the sample."""

import numpy as np
import pytest

from mpisim.analysis.claims import judge
from mpisim.analysis.study import find
from mpisim.runs.log.reader import read
from run.cdadam import logistic
from tests.helpers import run_tables, table

PROBLEM = {"name": "logistic-nonconvex-reg", "lambda": 0.1}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Two steps for each of the four methods."""
    folder = tmp_path_factory.mktemp("cdadam")
    for method in logistic.LOOKS:
        for step in (0.001, 0.009):
            compressor = {"name": "identity" if method == "amsgrad" else "scaled-sign"}
            tables = table(
                {"name": method, "stepsize": step}, compressor, rounds=120, problem=PROBLEM
            )
            run_tables(tables, folder / f"{method}-{step}.h5")
    return [read(path) for path in sorted(folder.glob("*.h5"))]


def test_the_best_step_is_drawn(logs):
    found = logistic.runs(logs)
    assert [method for _, method in found] == sorted(logistic.LOOKS)
    for (_, method), log in found.items():
        rivals = [other for other in logs if other.attrs["method"] == method]
        last = [other.column("grad_norm_sq")[-1] for other in rivals]
        assert log.column("grad_norm_sq")[-1] == min(last)


def test_claims_are_computed_from_the_logs(logs):
    claims = list(logistic.fig2(logs))
    [bits], [rounds], stalls = ([one.numbers for one in claim.evidence] for claim in claims)
    found = {method: log for (_, method), log in logistic.runs(logs).items()}
    cd_adam = found["cd-adam"]
    assert bits["budget"] == 120 * 2 * (32 + 123)
    norm = np.sqrt(cd_adam.column("grad_norm_sq"))
    assert bits["norms"]["cd-adam"] == np.median(norm[-12:])
    # uncompressed rounds cost 2 x 32 d bits: 4 of them are within the budget
    assert bits["norms"]["amsgrad"] == pytest.approx(
        np.sqrt(found["amsgrad"].column("grad_norm_sq")[120 * 155 // (32 * 123)])
    )
    rivals = [bits["norms"][method] for method in logistic.LOOKS if method != "cd-adam"]
    assert bits["median"] == min(rivals) / bits["norms"]["cd-adam"]
    assert claims[0].verdict == judge([bits["median"]])
    same, falls = rounds["ratio"] <= logistic.SAME, rounds["falls"]
    assert claims[1].verdict == ("holds" if same else "not decided" if falls else "does not hold")
    assert len(stalls) == 2 and all(own["above"] > 0 for own in stalls)
    names = [claim.claim for claim in logistic.fig4(logs)]
    assert len(names) == 3 and not any("stall" in name for name in names)


def test_a_missing_method_is_said(logs):
    some = [log for log in logs if log.attrs["method"] != "ef-amsgrad"]
    for claims in (logistic.fig2(some), logistic.fig4(some)):
        best, same, last = claims
        for claim in (best, last):
            assert claim.verdict == "not decided"
            assert "no complete run of AMSGrad (EF)" in claim.measured
        assert "AMSGrad (EF)" not in same.measured


@pytest.mark.parametrize("name", ["cdadam-fig2", "cdadam-fig4"])
def test_it_draws(name, logs, tmp_path):
    figure = find(name)[1].draw(logs)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
