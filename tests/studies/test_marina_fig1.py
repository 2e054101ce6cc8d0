"""MARINA, Figure 1, from logs made by hand; its grid of runs; the commands."""

import json

import h5py
import numpy as np
import pytest

from mpisim.analysis.claims import at_one_target
from mpisim.analysis.study import complete_logs
from run.marina import fig1

RATES = {"marina": 1.05, "diana": 0.1, "vr-marina": 0.1, "vr-diana": 0.2}
COUNTS = (1, 5, 10)


@pytest.fixture
def folder(make_log, tmp_path):
    """Logs of the four methods, K in {1, 5, 10}, two seeds: VR-MARINA alone is the slower one."""
    for method, rate in RATES.items():
        for k in COUNTS:
            for seed in (1, 2):
                _log(make_log, method, k, seed, rate * (1 + k / 10))
    return tmp_path


def _log(make_log, method, k, seed, rate):
    rounds = np.arange(51)
    columns = {
        "bits_up": 5 * 32 * k * rounds + 5 * 32 * 113 * (rounds > 0) * ("marina" in method),
        "oracle_calls": 5 * 1624 * (rounds + 1),
    }
    attrs = {"method_p": k / 113, "stepsize": 1 / (1 + (113 / k - 1) / np.sqrt(5))}
    table = f'name = "randk"\nk = {k}'
    path = make_log(method, table, seed, rate=rate, columns=columns, attrs=attrs)
    with h5py.File(path, "a") as file:
        file["workers/rows"] = np.full(5, 1624)
        if method.startswith("vr"):
            named = f'name = "{method}"'
            file.attrs["config"] = file.attrs["config"].replace(named, f"{named}\nbatch = 0.01")
    return path


def test_claims(folder):
    logs, left = complete_logs(folder)
    assert not left
    claims = {claim.claim: claim for claim in fig1.claims(logs)}
    assert len(claims) == 4 + 4 + 4 + 2
    rounds = claims["MARINA needs fewer rounds than DIANA"]
    assert rounds.verdict == "holds" and "superiority of MARINA to DIANA" in rounds.quote
    assert [one.where for one in rounds.evidence] == [f"mushrooms, K = {k}" for k in COUNTS]
    for one in rounds.evidence:
        assert at_one_target([one])[1] == pytest.approx([10], rel=0.1)
        assert one.numbers["seeds"] == [1, 2] and one.verdict == "holds"
    calls = claims["VR-MARINA needs fewer sample gradients than VR-DIANA"]
    assert calls.verdict == "does not hold"
    for one in calls.evidence:
        assert one.numbers["by_target"]["0.01"]["ratios"] == pytest.approx([0.5] * 2, rel=0.1)
    larger = claims["MARINA needs fewer rounds the larger K"]
    assert larger.verdict == "holds" and "K = 10 against 5" in larger.evidence[0].where
    smaller = claims["MARINA needs fewer expected bits the smaller K"]
    assert smaller.verdict == "holds" and "K = 1 against 10" in smaller.evidence[0].where


def test_the_last_sweep_says_what_is_drawn(folder):
    paths = sorted(folder.glob("*.h5"))
    with h5py.File(paths[1], "a") as file:
        file.attrs["status"] = "diverged"
    rest = dict(settings={}, config="", status="done")
    points = [{"name": path.stem, "log": f"elsewhere/{path.name}", **rest} for path in paths[:3]]
    points.append({"name": "gone", "log": "elsewhere/gone.h5", **rest})
    (folder / "sweep.json").write_text(json.dumps({"points": points}))
    logs, left = complete_logs(folder)
    assert [log.path for log in logs] == [paths[0], paths[2]]
    assert len(left) == 2 and "diverged" in left[0] and "not run" in left[1]
