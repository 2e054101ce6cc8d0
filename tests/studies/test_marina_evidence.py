"""What the published MARINA code changes: its compressor and its DIANA, as README.md has them.

They register names of their own, which other tests must not see: each test is a process.
"""

import json
import subprocess
import sys

import pytest

from mpisim.core.errors import InputError
from run.marina import evidence
from tests.comm.jobs import HANG_SECONDS, ROOT

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


def python(code):
    """Runs code in a process of its own, from the repository."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_error_where_all_workers_draw_alike():
    python(ALIKE)


def test_tables_are_drawn(tmp_path):
    tables = [[["a", "b", "c"], ["x, K = 1", 1.0, 2e-7]], [["d", "e"], ["y", 3.0]]]
    (tmp_path / evidence.TABLES).write_text(json.dumps(tables))
    figure = evidence.draw(evidence.read(tmp_path))
    cells = [cell.get_text().get_text() for cell in figure.axes[0].tables[0].get_celld().values()]
    assert set(cells) == {"a", "b", "c", "x, K = 1", "1", "2e-07"} and len(figure.axes) == 2
    with pytest.raises(InputError, match="mpisim study run/marina evidence"):
        evidence.read(tmp_path / "nowhere")
