"""Images of registered sets and of files, read and checked."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.schema import choose
from mpisim.problems.data.content import read_content, sha256, verify
from mpisim.problems.data.find import find_file, missing
from mpisim.problems.data.image_formats import CIFAR_CLASSES, parse_cifar, parse_idx
from mpisim.problems.data.registry import lookup, registry
from mpisim.problems.data.sample_images import sample_images


def load_images(name: str, part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of ``part`` (train or test) of a registered image set.

    images : shape (rows, 28, 28) for mnist, (rows, 3, 32, 32) for cifar, uint8
    labels : shape (rows,), uint8; for CIFAR-100 the 100 fine ones

    Raises `InputError` if the set is unknown, missing, or damaged.
    """
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
    blocks = [parse_cifar(*c, dataset.kind) for c in contents]
    return np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])


def load_pixels(name: str) -> tuple[np.ndarray, str]:
    """The training images as rows, shape (rows, pixels), uint8, and their sha256.

    ``name`` is a registered image set, a path to an idx file of images, or "sample", a generated
    set. Raises `InputError` as `load_images` does.
    """
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
    """The array in an idx file (plain or compressed), uint8; `InputError` if it is not one."""
    return parse_idx(read_content(path), str(path))


def read_cifar(path: Path, kind: str = "cifar10") -> tuple[np.ndarray, np.ndarray]:
    """Images (rows, 3, 32, 32) and labels (rows,), uint8, of a CIFAR file; or `InputError`.

    ``kind`` is cifar10 or cifar100 (fine labels).
    """
    choose(CIFAR_CLASSES, kind, "kind")
    return parse_cifar(read_content(path), str(path), kind)
