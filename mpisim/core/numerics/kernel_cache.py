"""Compiled kernels on the disk, without those that are out of date, and when the compiler works.

Numba compiles a kernel anew if its own file changes. It does not notice a change in another file,
of a constant or a function that the kernel uses, and goes on with the old one. It also executes
whatever is in its files: damaged ones end in tracebacks or crashes, and those of another user in
that user's code. `KernelFile` replaces its files.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import caching, config, event
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys

from mpisim.core.errors import InputError
from mpisim.core.files import try_write
from mpisim.core.imports import PACKAGE, digest, reached, short
from mpisim.core.terminal import report_once

COMPILER = "numba:compiler_lock"  # held while a kernel is compiled, or loaded from the disk

FORMAT = 3  # of the files
CHECK = 64  # bytes of a kernel's file that are the checksum of its name and the others

_enable, _load_all = Dispatcher.enable_caching, caching.Cache.load_overload


class KernelFile(caching.IndexDataCacheFile):
    """The files of a kernel: one for each signature, processor and version of its sources.

    The sources are those of all modules from which it may take functions or constants.
    A file is written whole, synced and with a checksum, and is executed only if that agrees, and if
    nobody but this user, root and the owner of mpisim could have written it.
    """

    module = ""  # of the kernel; empty for a ufunc, which keeps to Numba's stamp of its source

    def load(self, key: Any) -> Any:
        """What `save` has saved for a signature; None if there is nothing that can be used."""
        path = self._path(key)
        try:
            content = _read_trusted(path)
        except OSError:
            return None
        if content[:CHECK] == _check(path, content[CHECK:]):
            return pickle.loads(content[CHECK:])
        report_once("mpisim: damaged kernels on the disk are compiled anew")
        return None

    def save(self, key: Any, data: Any) -> None:
        """Keep a kernel, in place of one from another version of its source, if possible."""
        path, content = self._path(key), self._dump(data)
        for other in path.parent.glob(f"{path.name.rsplit('.', 2)[0]}.*.nbc"):
            other.unlink(missing_ok=True)
        try_write(path, _check(path, content) + content, mode=0o644)

    def flush(self) -> None:
        """There is no index to be emptied."""

    def _path(self, key: Any) -> Path:
        sources = self._source_stamp, _digest(self.module) if self.module else ""
        version = short(repr((FORMAT, self._version, *sources)).encode())
        base = self._index_name.removesuffix(".nbi")
        return Path(self._cache_path, f"{base}.{short(repr(key).encode())}.{version}.nbc")


def _check(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + content).hexdigest().encode()


def _read_trusted(path: Path) -> bytes:
    """The content of a file that no other user could have written; else `OSError`."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        owners = 0, os.geteuid(), PACKAGE.stat().st_uid
        if stat.S_ISREG(status.st_mode) and status.st_uid in owners and not status.st_mode & 0o022:
            return file.read()
    what = "kernels that others could write"
    report_once(f"mpisim: {what} are not used, such as those in {path.parent}", what)
    raise PermissionError(path)


def _enable_if_possible(kernel: Dispatcher) -> None:
    try:
        _enable(kernel)
        file = kernel._cache._cache_file  # type: ignore[attr-defined]
        file.module = str(kernel.py_func.__module__)
    except RuntimeError:
        report_once(
            "mpisim: each process compiles its kernels, as no folder for them can be written;"
            " NUMBA_CACHE_DIR names one"
        )


def _load(cache: caching.Cache, signature: Any, context: Any) -> Any:
    """Numba's `load_overload`, which would also load all that the compiler needs, for 0.1 s.

    A ufunc needs it, as it compiles a loop around its kernel.
    """
    if not cache._cache_file.module:  # type: ignore[attr-defined]
        return _load_all(cache, signature, context)
    rtsys.initialize(context)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, context)


def prepare() -> None:
    """Make Numba keep kernels as `KernelFile` does, or not at all; before any kernel is defined.

    `InputError` where Numba is told not to compile.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise InputError(
            "NUMBA_DISABLE_JIT: is set, but mpisim needs its kernels compiled; unset it"
        )
    caching.IndexDataCacheFile = KernelFile  # type: ignore[misc]
    caching.Cache._guard_against_spurious_io_errors = lambda self: suppress(OSError)  # type: ignore
    caching.Cache.load_overload = _load  # type: ignore[method-assign]
    Dispatcher.enable_caching = _enable_if_possible  # type: ignore


@cache
def _digest(name: str) -> str:
    """A digest of all modules from which the kernels of one may take functions or constants."""
    files = reached([name], lambda _, path: path.exists())
    return short("\n".join(f"{one} {digest(files[one])}" for one in sorted(files)).encode())


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


def around_compiler(
    start: Callable[[], None], stop: Callable[[], None]
) -> AbstractContextManager[Any]:
    """Call ``start`` before a kernel is compiled or loaded from the disk, and ``stop`` after it."""
    return event.install_listener(COMPILER, _Outermost(start, stop))
