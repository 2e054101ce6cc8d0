"""Numbers with the same bits on every processor, and what depends on the compiler.

What rests on internals of Numba, llvmlite or NumPy is here; `tests/core/test_internals.py` says
which of them changed.
"""

from mpisim.core.numerics.kernel_cache import prepare

prepare()
