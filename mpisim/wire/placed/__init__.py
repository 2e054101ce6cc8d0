"""Messages whose vectors are tensors on a device, while what crosses stays on the host.

They are packed on the device and copied to the host once, or the other way round. What they decode
to comes from what was packed alone. A kind of message has a module here if it has kernels for a
device; its `Message.on` says so.
"""

from __future__ import annotations

from typing import Any

from mpisim.core.arrays import in_host_memory
from mpisim.wire.base import Message
from mpisim.wire.placed.base import Placed


def placed(message: Message, device: Any) -> Message:
    """``message`` with decoded vectors on ``device``, decoded on the host if memory is shared."""
    if isinstance(message, Placed):
        return message
    return Placed(message, device) if in_host_memory(device) else message.on(device)
