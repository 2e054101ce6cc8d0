"""The processor as compiled code sees it: what its vector instructions may depend on.

Each library chooses its instructions at start, from the processor or from the environment: Numba by
NUMBA_CPU_NAME and NUMBA_CPU_FEATURES, NumPy by NPY_DISABLE_CPU_FEATURES, OpenBLAS by
OPENBLAS_CORETYPE.
"""

from __future__ import annotations

from functools import cache

FLOATS = ("+sse", "+ssse", "+avx", "+fma", "+f16c")  # LLVM has some seventy others


@cache
def facts() -> dict[str, str]:
    """Lines of text for logs and for comparisons of ranks.

    cpu : LLVM's name of the processor that Numba compiles for, such as ``haswell``
    cpu_features, numpy_simd : see `features` and `numpy_features`
    blas_core : the processors that the loaded BLAS libraries have kernels for, such as
        ``SkylakeX``; empty if this is not known
    """
    import numpy  # noqa: F401  (loads its BLAS)
    from llvmlite import binding
    from numba.core import config
    from threadpoolctl import threadpool_info

    pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return {
        "cpu": config.CPU_NAME or binding.get_host_cpu_name(),  # type: ignore[attr-defined]
        "cpu_features": " ".join(features()),
        "numpy_simd": " ".join(numpy_features()),
        "blas_core": " ".join(dict.fromkeys(p.get("architecture") or "" for p in pools)).strip(),
    }


def features() -> tuple[str, ...]:
    """LLVM's names of the instruction sets for floats that Numba may use, sorted: ``avx2``, say."""
    from numba.core import codegen, config

    given = config.CPU_FEATURES  # type: ignore[attr-defined]
    listed = codegen.get_host_cpu_features() if given is None else given
    return tuple(sorted(item[1:] for item in listed.split(",") if item.startswith(FLOATS)))


def numpy_features() -> tuple[str, ...]:
    """The instruction sets that NumPy chooses among and uses here, beyond those it always needs."""
    from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]

    used: dict[str, bool] = umath.__cpu_features__
    return tuple(feature for feature in umath.__cpu_dispatch__ if used[feature])
