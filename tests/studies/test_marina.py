"""The logs that a figure shows, and what the published code of MARINA changes."""

import json

from mpisim.analysis.study import complete_logs
from tests.comm.jobs import python


def test_the_last_sweep_says_what_is_drawn(make_log, tmp_path):
    paths = [make_log(), make_log(seed=2, attrs={"status": "diverged"}), make_log(seed=3)]
    rest = dict(settings={}, config="", status="done")
    points = [{"name": path.stem, "log": f"elsewhere/{path.name}", **rest} for path in paths]
    points.append({"name": "gone", "log": "elsewhere/gone.h5", **rest})
    (tmp_path / "sweep.json").write_text(json.dumps({"points": points}))
    logs, left = complete_logs(tmp_path)
    assert [log.path for log in logs] == [paths[0], paths[2]]
    assert len(left) == 2 and "diverged" in left[0] and "not run" in left[1]


ALIKE = """
import numpy as np
from run.marina.measure_evidence import N, _error
d, k = 40, 4
v = np.random.default_rng(1).normal(1.0, 2.0, (N, d))
mean, omega = v.mean(axis=0), d / k - 1
alone = omega * np.sum(v**2) / N**2 / (mean @ mean)
found = [_error({"name": name, "k": k}, v, 20000) for name in ("randk", "randk-alike")]
# independent: omega / n^2 sum |v_i|^2; alike, the mean message is RandK of the mean
assert np.allclose(found, [alone, omega], rtol=0.03), (found, alone, omega)
assert alone < 0.8 * omega
"""


def test_the_error_where_all_workers_draw_alike():
    python(ALIKE)
