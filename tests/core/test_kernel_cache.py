"""No kernel runs with a function that has been edited since it was compiled."""

import os
import subprocess
import sys

CALLED = """
from numba import njit

@njit
def f(x):
    return x + {number}
"""
CALLER = """
from numba import njit
from mpisim.core.called import f

@njit(cache=True)
def g(x):
    return f(x)
"""
RUN = """
import sys
from pathlib import Path
import mpisim.core
mpisim.core.__path__.append(sys.argv[1])
import mpisim.core.caller as caller
from mpisim.core import imports
from mpisim.core.numerics import kernel_cache
places = {name: Path(sys.argv[1]) / f"{name.rpartition('.')[2]}.py"
          for name in ("mpisim.core.caller", "mpisim.core.called")}
original = imports.file_of
imports.file_of = kernel_cache.file_of = lambda name: places.get(name) or original(name)
if "refresh" in sys.argv:
    kernel_cache.refresh()
print(caller.g(1), sum(caller.g.stats.cache_hits.values()))
"""


def test_a_function_of_another_file_is_edited(tmp_path):
    def said(*words):
        job = [sys.executable, "-c", RUN, str(tmp_path), *words]
        done = subprocess.run(job, check=True, stdout=subprocess.PIPE, env=own)
        return done.stdout.decode().split()

    own = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    (tmp_path / "caller.py").write_text(CALLER)
    (tmp_path / "called.py").write_text(CALLED.format(number=1))
    assert said("refresh") == ["2", "0"]
    assert said("refresh") == ["2", "1"]  # from the disk
    (tmp_path / "called.py").write_text(CALLED.format(number=5))
    assert said() == ["2", "1"]  # what Numba does by itself
    assert said("refresh") == ["6", "0"]
    assert said("refresh") == ["6", "1"]
