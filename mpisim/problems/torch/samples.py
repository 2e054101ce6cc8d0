"""Training and test samples: by name, of tensors and Datasets, and of other libraries.

Those are torchvision and Hugging Face's datasets. Nothing here needs PyTorch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from mpisim.core.errors import InputError, library
from mpisim.core.registry import registered
from mpisim.core.rng import Streams
from mpisim.core.schema import choose, require
from mpisim.problems.data.content import load_images, parse_cifar, read_content
from mpisim.problems.data.find import folders, locate, missing

CIFAR10_PART = ("cifar10_train_first4000.bin", "cifar10_test_first1000.bin")
GENERATED = (4000, 1000)  # training and test images
ARRAYS = ("features", "labels", "test_features", "test_labels")
IMAGES = ("image", "img", "pixel_values")  # what columns of images are called at Hugging Face
LABELS = ("label", "labels", "fine_label")
SIZE, CLASSES, NOISE, SHIFT = 32, 10, 40.0, 4


@dataclasses.dataclass(frozen=True)
class Samples:
    """A data set, for classification unless ``classes`` is 0.

    features, test_features : uint8 images (N, channels, height, width); or numbers of any shape
        (N, ...), which stay as they are
    labels, test_labels : shape (N,), int64, in 0, ..., classes - 1; or other targets (N, ...)
    """

    features: np.ndarray
    labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray
    classes: int = 0

    @property
    def sha256(self) -> str:
        """Of all arrays."""
        digest = hashlib.sha256()
        for name in ARRAYS:
            digest.update(np.ascontiguousarray(getattr(self, name)).tobytes())
        return digest.hexdigest()

    def first(self, count: int) -> Samples:
        """The first ``count`` training samples and as many test samples; all of them for 0."""
        parts = {name: getattr(self, name)[: count or None] for name in ARRAYS}
        return dataclasses.replace(self, **parts)


def are_images(features: np.ndarray) -> bool:
    """Whether features are images, (N, channels, height, width), uint8."""
    return features.dtype == np.uint8 and features.ndim == 4


def pooled(images: np.ndarray, size: int) -> np.ndarray:
    """Images averaged over squares of ``size`` x ``size`` pixels, rounded; others as they are."""
    if not are_images(images) or size == 1:
        return images
    h, w = images.shape[2:]
    require(size <= min(h, w), "problem.pool", size, f"at most {min(h, w)}, an image's side")
    cropped = images[..., : h // size * size, : w // size * size]
    blocks = cropped.reshape(*images.shape[:2], h // size, size, w // size, size)
    return np.rint(blocks.mean(axis=(3, 5))).astype(np.uint8)


SAMPLES: dict[str, Callable[[], Samples]] = {}


def data_set(name: str):
    """Decorator of a function () -> `Samples`: registers it under ``name``."""
    load.cache_clear()
    return registered(SAMPLES, name)


@lru_cache(maxsize=2)
def load(name: str) -> Samples:
    """The samples called ``name``; `InputError` if they are unknown or missing.

    ``torchvision:NAME`` and ``datasets:NAME`` are those of other libraries.
    """
    place, colon, rest = name.partition(":")
    if colon and name not in SAMPLES:
        return choose(LIBRARIES, place, "problem.data, before ':'")(rest)
    return choose(SAMPLES, name, "problem.data")()


def available(name: str) -> bool:
    """Whether the samples called ``name`` can be loaded."""
    try:
        load(name)
    except InputError:
        return False
    return True


def _registered(name: str, classes: int) -> Samples:
    return _of_images(*load_images(name, "train"), *load_images(name, "test"), classes)


def _of_images(images, labels, test_images, test_labels, classes: int) -> Samples:
    if images.ndim == 3:  # one channel
        images, test_images = images[:, None], test_images[:, None]
    return Samples(
        images, labels.astype(np.int64), test_images, test_labels.astype(np.int64), classes
    )


for _name, _classes in (("cifar10", 10), ("cifar100", 100), ("mnist", 10)):
    data_set(_name)(partial(_registered, _name, _classes))


@data_set("cifar10-part")
def cifar10_part() -> Samples:
    """The first 4,000 training and 1,000 test images of CIFAR-10."""
    parts = []
    for name in CIFAR10_PART:
        path = locate(name)
        if path is None:
            raise missing(name)
        parts.append(parse_cifar(read_content(path), str(path), "cifar10"))
    return _of_images(*parts[0], *parts[1], 10)


@data_set("generated")
def generated() -> Samples:
    """4,000 and 1,000 images, 3 x 32 x 32, 10 classes: the same on every machine.

    A class is a coarse random picture. An image is that picture, shifted cyclically by up to 4
    pixels, at half to full contrast, plus noise.
    """
    random = Streams(0).generator("generated images")
    coarse = random.uniform(-1, 1, (CLASSES, 3, 4, 4))
    pictures = coarse.repeat(SIZE // 4, axis=2).repeat(SIZE // 4, axis=3)
    count = sum(GENERATED)
    labels = random.integers(0, CLASSES, count)
    shifts = random.integers(-SHIFT, SHIFT + 1, (count, 2))
    contrast = random.uniform(0.5, 1.0, (count, 1, 1, 1))
    rows, columns = ((np.arange(SIZE) - shifts[:, axis, None]) % SIZE for axis in (0, 1))
    images = pictures[labels[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    values = 128 + 60 * contrast * images.transpose(0, 3, 1, 2)
    values += NOISE * random.standard_normal(values.shape)
    pixels = np.clip(values, 0, 255).astype(np.uint8)
    first = GENERATED[0]
    return Samples(pixels[:first], labels[:first], pixels[first:], labels[first:], CLASSES)


# from tensors, Datasets and other libraries


def samples_of(train: Any, test: Any) -> Samples:
    """Samples from two pairs (features, targets) of tensors or arrays, or two PyTorch Datasets.

    A Dataset is anything with a length whose items are such pairs. Images become uint8, (channels,
    height, width). Targets that are integers are classes.
    """
    features, targets = _arrays(train)
    test_features, test_targets = _arrays(test)
    labels = np.concatenate([targets, test_targets])
    are_classes = labels.ndim == 1 and labels.dtype.kind in "iu"
    classes = int(labels.max(initial=-1)) + 1 if are_classes else 0
    return Samples(features, targets, test_features, test_targets, classes)


def _arrays(source: Any) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, ...) and targets (N, ...)."""
    source = getattr(source, "tensors", source)  # of a TensorDataset
    pairs = [source] if isinstance(source, tuple) else [source[i] for i in range(len(source))]
    for pair in pairs:
        if len(pair) != 2:
            raise InputError(f"samples: {len(pair)} parts; allowed: features and targets")
    if isinstance(source, tuple):
        features, targets = (_on_host(part) for part in source)
    else:
        features = _stacked(_feature(x) for x, _ in pairs)
        targets = _stacked(_on_host(y) for _, y in pairs)
    if len(features) != len(targets):
        raise InputError(f"samples: {len(features)} features, but {len(targets)} targets")
    return features, targets.astype(np.int64) if targets.dtype.kind in "iu" else targets


def _on_host(values: Any) -> np.ndarray:
    """As an array, also where it is a tensor on a device, or one with a gradient."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _feature(x: Any) -> np.ndarray:
    """A sample's features; a picture's (height, width, channels) become (channels, ...)."""
    if not hasattr(x, "convert"):  # of a PIL image, whose channels come last
        return _on_host(x)
    values = np.asarray(x if x.mode in ("L", "RGB") else x.convert("RGB"))
    return values[None] if values.ndim == 2 else np.moveaxis(values, -1, 0)


def _stacked(parts: Iterable[np.ndarray]) -> np.ndarray:
    try:
        return np.stack(list(parts))
    except ValueError as error:
        raise InputError(f"samples: cannot be one array: {error}") from None


def of_torchvision(name: str) -> Samples:
    """``torchvision.datasets.NAME``, from the folders with data sets; nothing is downloaded."""
    sets = library("torchvision", "", f'problem.data: "torchvision:{name}"').datasets
    kind = getattr(sets, name, None)
    if not callable(kind):
        raise InputError(f"problem.data: torchvision.datasets has no {name!r}")
    keys = inspect.signature(kind).parameters
    parts: list[dict[str, Any]] = [{"train": True}, {"train": False}]
    if "train" not in keys:
        parts = [{"split": "train"}, {"split": "test"}]
    return samples_of(*(_downloaded(kind, part) for part in parts))


def _downloaded(kind: Callable[..., Any], part: dict[str, Any]) -> Any:
    for folder in folders():
        try:
            return kind(root=str(folder), **part)
        except (RuntimeError, OSError):  # not there, or not whole
            continue
    text = f"torchvision.datasets.{kind.__name__}(root={str(folders()[-1])!r}, download=True, "
    keys = ", ".join(f"{key}={value!r}" for key, value in part.items())
    raise InputError(f"problem.data: not found; get it in Python: {text}{keys})")


def of_hugging_face(name: str) -> Samples:
    """The data set NAME of the Hub: its images and labels, in the parts ``train`` and ``test``."""
    datasets = library("datasets", "", f'problem.data: "datasets:{name}"')
    try:
        parts = [datasets.load_dataset(name, split=part) for part in ("train", "test")]
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"problem.data: datasets:{name} cannot be loaded: {reason}") from None
    columns = list(parts[0].column_names)
    image, label = _column(IMAGES, columns, name), _column(LABELS, columns, name)
    return samples_of(*([(row[image], row[label]) for row in part] for part in parts))


def _column(names: tuple[str, ...], columns: list[str], data: str) -> str:
    for name in names:
        if name in columns:
            return name
    raise InputError(
        f"problem.data: datasets:{data} has none of the columns {', '.join(names)}, but"
        f" {', '.join(columns)}; a plugin can choose (`data_set`)"
    )


LIBRARIES: dict[str, Callable[[str], Samples]] = {
    "torchvision": of_torchvision,
    "datasets": of_hugging_face,
}
