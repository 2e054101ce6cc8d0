"""The compiled functions of the package in this process."""

import sys
from collections.abc import Iterator

from numba.core.dispatcher import Dispatcher


def kernels() -> Iterator[Dispatcher]:
    """All that loaded modules hold."""
    modules = [module for name, module in sys.modules.items() if name.startswith("mpisim.")]
    for value in (value for module in modules for value in vars(module).values()):
        if isinstance(value, Dispatcher):
            yield value


def forget_kernels() -> None:
    """As in a process that has not used a kernel yet."""
    for kernel in kernels():
        kernel.overloads.clear()
        kernel._reset_overloads()
