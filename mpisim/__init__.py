"""mpisim: a multi-process simulator of compressed distributed optimisation on MPI.

Importing this package starts neither MPI nor any compilation.
"""

import os

# Two BLAS threads on a rank's small blocks are several times slower than one and change the
# last bits of results, so threads are pinned before NumPy loads, unless the user chose.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from mpisim.core.version import VERSION  # noqa: E402

__version__ = VERSION
