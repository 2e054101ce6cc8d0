"""Compress vectors of any kind, and decode messages to where a run's vectors live."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.arrays import FALLBACK, HOST, Arrays, in_host_memory, is_tensor, to_host
from mpisim.core.rng import Draw
from mpisim.wire.base import Message


def compressed(compressor: Compressor, v: Any, draw: Draw) -> Message:
    """The messages of a block of workers with vectors ``v`` (m, d).

    Tensors are compressed on their device, or on the host where the compressor or the memory is
    there.
    """
    if isinstance(v, np.ndarray) or not is_tensor(v):
        return compressor.compress(v, draw)
    from mpisim.wire.placed import placed  # imports PyTorch

    if compressor.on_device and not in_host_memory(v.device):
        return compressor.compress(v, draw)
    return placed(compressor.compress(to_host(v, FALLBACK), draw), v.device)


def received(message: Message, arrays: Arrays) -> Message:
    """``message``, decoded to ``arrays``."""
    if arrays is HOST:
        return message
    from mpisim.wire.placed import placed

    return placed(message, arrays.device)
