"""Image formats: the idx files of MNIST and the binary records of CIFAR-10 and CIFAR-100.

Sources: Y. LeCun, "The MNIST database" (idx: big-endian magic 0, 0, type, dimensions, then sizes,
then values); A. Krizhevsky, "The CIFAR-10 dataset" (records of label bytes and 3 x 1024 pixels).
"""

from __future__ import annotations

from math import prod

import numpy as np

from mpisim.core.errors import InputError

CIFAR_CLASSES = {"cifar10": (10,), "cifar100": (20, 100)}  # one entry per label byte
_PIXELS = 3 * 32 * 32


def parse_idx(content: bytes, source: str) -> np.ndarray:
    """The array in an idx file of unsigned bytes; ``source`` names the file in an `InputError`."""
    if len(content) < 4 or content[:3] != b"\x00\x00\x08" or not 1 <= content[3] <= 4:
        raise InputError(
            f"{source}: magic {content[:4].hex(' ') or 'missing'}; allowed: an idx file of unsigned"
            " bytes (00 00 08 and 1 to 4 dimensions)"
        )
    head = 4 + 4 * content[3]
    sizes = [int.from_bytes(content[i : i + 4], "big") for i in range(4, head, 4)]
    if len(content) < head or len(content) != head + prod(sizes):
        raise InputError(
            f"{source}: {len(content)} bytes; allowed: {head} + {' x '.join(map(str, sizes))} as"
            " its header says (truncated?)"
        )
    return np.frombuffer(content, np.uint8, offset=head).reshape(sizes)


def parse_cifar(content: bytes, source: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (rows, 3, 32, 32) and labels (rows,), uint8, in a CIFAR file.

    ``kind`` is a key of CIFAR_CLASSES; the labels are the finest ones, the last byte of several.
    ``source`` names the file in an `InputError`.
    """
    classes = CIFAR_CLASSES[kind]
    size = len(classes) + _PIXELS
    if not content or len(content) % size:
        raise InputError(
            f"{source}: {len(content)} bytes; allowed: a positive multiple of {size}, the size of"
            " a record (truncated?)"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    for byte, count in enumerate(classes):
        bad = np.flatnonzero(records[:, byte] >= count)
        if len(bad):
            raise InputError(
                f"{source}: label {records[bad[0], byte]} in record {bad[0]}; allowed: 0 to"
                f" {count - 1}"
            )
    return records[:, len(classes) :].reshape(-1, 3, 32, 32), records[:, len(classes) - 1]
