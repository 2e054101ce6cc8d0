"""Compiled kernels on the disk, without those that are out of date, and when the compiler works.

Numba compiles a kernel anew if its own file changes. It does not notice a change in another file,
of a function that the kernel calls, and goes on with the old one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType

from numba.core import event
from numba.core.dispatcher import Dispatcher

from mpisim.core.imports import digest, file_of, imports, short

COMPILER = "numba:compiler_lock"  # held while a kernel is compiled, or loaded from the disk

_fresh: set[str] = set()  # modules whose kernels on the disk have been looked at


def refresh() -> None:
    """Delete kernels of loaded modules if a module that they take functions from has changed.

    Call it before any kernel. A folder that cannot be written stays as it is.
    """
    defer_blas_check()
    for name, module in sorted(sys.modules.items()):
        if name.startswith("mpisim.") and name not in _fresh:
            _fresh.add(name)
            _refresh(name, module)


def _refresh(name: str, module: ModuleType) -> None:
    """`refresh` for one module."""
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
    digests: dict[str, str] = {}
    waiting = [name]
    while waiting:
        other = waiting.pop()
        path = file_of(other)
        if other not in digests and path is not None and _has_kernels(path):
            digests[other] = digest(path)
            waiting += imports(other, path)
    return short("\n".join(f"{other} {digests[other]}" for other in sorted(digests)).encode())


@cache
def _has_kernels(path: Path) -> bool:
    return path.exists() and b"numba" in path.read_bytes()


def defer_blas_check() -> None:
    """Put off Numba's check for a BLAS until a kernel with ``@`` is compiled or called.

    Call it before the first kernel of a process, with which Numba loads its versions of NumPy's
    functions. The check then imports `scipy.linalg`, which takes longer than mpisim's modules. No
    kernel here needs it; those of plugins may, and Numba then checks again.
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


class _Outermost(event.Listener):
    """Calls ``start`` and ``stop`` around the outermost of nested events."""

    def __init__(self, start: Callable[[], None], stop: Callable[[], None]):
        self.start, self.stop, self.depth = start, stop, 0

    def on_start(self, event: event.Event) -> None:
        self.depth += 1
        if self.depth == 1:
            self.start()

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.stop()


@contextmanager
def around_compiler(start: Callable[[], None], stop: Callable[[], None]) -> Iterator[None]:
    """Call ``start`` before a kernel is compiled or loaded from the disk, and ``stop`` after it."""
    listener = _Outermost(start, stop)
    event.register(COMPILER, listener)
    try:
        yield
    finally:
        event.unregister(COMPILER, listener)
