"""mpisim: a multi-process simulator of compressed distributed optimisation on MPI.

    experiment = mpisim.Experiment.load("first.toml")
    result = mpisim.run(experiment)
    result.rows["grad_norm_sq"]

Importing this package starts neither MPI nor any compilation: names load when they are used.
"""

import os

import lazy_loader

from mpisim.core import VERSION, home

# Two BLAS threads on a rank's small blocks are several times slower than one and change the
# last bits of results, so threads are pinned before NumPy loads, unless the user chose.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
home.provide()

__version__ = VERSION
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
