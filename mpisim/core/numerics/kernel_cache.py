"""Compiled kernels on the disk, without those that are out of date, loaded without SciPy.

Numba compiles a kernel anew if its own file changes. It does not notice a change in another file,
of a function that the kernel calls, and goes on with the old one.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

from numba.core.dispatcher import Dispatcher

from mpisim.core.imports import digest, file_of, imports, short


def refresh() -> None:
    """Delete kernels of loaded modules if a module that they take functions from has changed.

    For use before any of them is called. A folder that cannot be written stays as it is.
    """
    defer_blas_check()
    for name, module in sorted(sys.modules.items()):
        if name.startswith("mpisim."):
            _refresh(name, module)


_known: set[str] = set()


def _refresh(name: str, module: ModuleType) -> None:
    """`refresh` for one module, once in a process."""
    if name in _known:
        return
    _known.add(name)
    kernels = (value for value in vars(module).values() if isinstance(value, Dispatcher))
    places = (kernel.stats.cache_path for kernel in kernels if kernel.__module__ == name)
    place, path = next(filter(None, places), None), file_of(name)
    if place is None or path is None:
        return
    folder = Path(place)
    stamp, now = folder / f"{path.stem}.sources", _digest(name)
    with suppress(OSError):
        if stamp.exists() and stamp.read_text() == now:
            return
        for file in folder.glob(f"{path.stem}.*.nb[ic]"):
            file.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text(now)


def _digest(name: str) -> str:
    """A digest of all modules from which the kernels of one may take functions."""
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        other = waiting.pop()
        path = file_of(other)
        if other not in found and path is not None and _has_kernels(path):
            found[other] = digest(path)
            waiting += imports(other, path)
    return short("\n".join(f"{other} {found[other]}" for other in sorted(found)).encode())


@cache
def _has_kernels(path: Path) -> bool:
    return path.exists() and b"numba" in path.read_bytes()


def defer_blas_check() -> None:
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
