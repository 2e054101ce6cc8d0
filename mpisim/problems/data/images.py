"""Image files: the idx format of MNIST and the binary records of CIFAR-10 and CIFAR-100.

Sources: Y. LeCun, "The MNIST database" (idx: big-endian magic 0, 0, type, dimensions, then sizes,
then values); A. Krizhevsky, "The CIFAR-10 dataset" (records of label bytes and 3 x 1024 pixels).
"""

from __future__ import annotations

import os
from math import prod
from pathlib import Path

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.schema import choose
from mpisim.problems.data.sample_images import sample_images

CIFAR_CLASSES = {"cifar10": (10,), "cifar100": (20, 100)}  # one entry per label byte
_PIXELS = 3 * 32 * 32


def load_images(name: str, part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of ``part`` (train or test) of a registered image set.

    Returns
    -------
    images : array, shape (rows, 28, 28) for mnist, (rows, 3, 32, 32) for cifar, uint8
    labels : array, shape (rows,), uint8
        CIFAR-100: the 100 fine ones.

    Raises `InputError` where the set is unknown, not here, or damaged.
    """
    from mpisim.problems.data.content import read_content, verify
    from mpisim.problems.data.find import find_file, missing
    from mpisim.problems.data.registry import lookup, registry

    dataset = lookup(name)
    if dataset is None or dataset.kind == "libsvm":
        known = ", ".join(n for n, d in registry().items() if d.kind != "libsvm")
        raise InputError(f"data {name!r}: not an image set; allowed: {known}")
    if part not in ("train", "test"):
        raise InputError(f"data {name!r}: no part {part!r}; allowed: train, test")
    contents = []
    for file in (f for f in dataset.files if f.part.startswith(part)):
        path = find_file(dataset, file)
        if path is None:
            raise missing(name)
        contents.append((read_content(path), str(path)))
        verify(dataset, file, *contents[-1])
    if dataset.kind == "idx":
        images, labels = (parse_idx(*c) for c in contents)
        return images, labels
    blocks = [parse_cifar(*c, CIFAR_CLASSES[dataset.kind]) for c in contents]
    return np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])


def load_pixels(name: str) -> tuple[np.ndarray, str]:
    """The training images as rows, shape (rows, pixels), uint8, and their sha256.

    ``name`` is a registered image set, a path to an idx file of images, or "sample": generated
    ones. Raises `InputError` as `load_images` does.
    """
    from mpisim.problems.data.content import sha256

    if name == "sample":
        images = sample_images()
    elif os.path.isfile(os.path.expanduser(name)):
        images = read_idx(Path(name).expanduser())
        if images.ndim < 2 or not images.size:
            raise InputError(f"{name}: an idx file of shape {images.shape}; allowed: one of images")
    else:
        images, _ = load_images(name)
    rows = images.reshape(len(images), -1)
    return rows, sha256(np.ascontiguousarray(rows).data)


def read_idx(path: Path) -> np.ndarray:
    """The array in an idx file (plain or compressed), uint8; `InputError` where it is not one."""
    from mpisim.problems.data.content import read_content

    return parse_idx(read_content(path), str(path))


def read_cifar(path: Path, kind: str = "cifar10") -> tuple[np.ndarray, np.ndarray]:
    """Images (rows, 3, 32, 32) and labels (rows,), uint8, of a CIFAR binary file.

    ``kind`` is cifar10 or cifar100 (fine labels). Raises `InputError`.
    """
    from mpisim.problems.data.content import read_content

    return parse_cifar(read_content(path), str(path), choose(CIFAR_CLASSES, kind, "kind"))


def parse_idx(content: bytes, source: str) -> np.ndarray:
    """The array in the bytes of an idx file of unsigned bytes."""
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


def parse_cifar(
    content: bytes, source: str, classes: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Images and (the last byte's) labels in the bytes of a CIFAR file."""
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
