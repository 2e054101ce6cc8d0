"""Loading kernels without Numba's check that SciPy has a BLAS."""

from __future__ import annotations

import sys


def defer() -> None:
    """Put the check off until a kernel with ``@`` is compiled or called. For use before any is.

    With the first kernel of a process, Numba loads its own versions of NumPy's functions, and the
    check imports `scipy.linalg`, which takes longer than mpisim's own modules. No kernel here needs
    it; those of plugins may, and Numba then checks again.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    from numba.np import linalg

    check = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = check
