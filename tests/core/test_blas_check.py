"""A plugin's kernel may use BLAS, which is looked for when the kernel needs it."""

import os
import subprocess
import sys

from tests.comm.jobs import ROOT

KERNEL = """
from numba import njit

@njit(cache=True)
def product(a, b):
    return a @ b
"""
RUN = """
import sys
import numpy as np
from mpisim.core.numerics import kernel_cache
from mpisim.core.numerics.lanes import dot
kernel_cache.refresh()
a = np.arange(4.0).reshape(2, 2)
dot(a[0], a[1])
assert "scipy.linalg" not in sys.modules
from kernel import product
assert (product(a, a) == a @ a).all() and "scipy.linalg" in sys.modules
print(sum(product.stats.cache_hits.values()))
"""


def test_a_kernel_with_a_matrix_product(tmp_path):
    def hits() -> str:
        job = [sys.executable, "-c", RUN]
        return subprocess.run(
            job, check=True, capture_output=True, text=True, cwd=tmp_path, env=own
        ).stdout

    own = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    own.pop("NUMBA_CACHE_DIR", None)
    (tmp_path / "kernel.py").write_text(KERNEL)
    assert [hits(), hits()] == ["0\n", "1\n"]  # compiled, then from the disk
