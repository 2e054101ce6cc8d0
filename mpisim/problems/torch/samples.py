"""Training and test samples for the problem ``torch``, by name. Nothing here needs PyTorch."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.rng import Streams
from mpisim.core.schema import choose
from mpisim.problems.data.content import load_images, read_cifar
from mpisim.problems.data.find import locate, missing

CIFAR10_PART = ("cifar10_train_first4000.bin", "cifar10_test_first1000.bin")
GENERATED = (4000, 1000)  # training and test images
ARRAYS = ("features", "labels", "test_features", "test_labels")
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

    def with_features(self, change: Callable[[np.ndarray], np.ndarray]) -> Samples:
        """The same with other features, of training and of test samples."""
        features, test_features = change(self.features), change(self.test_features)
        return dataclasses.replace(self, features=features, test_features=test_features)


SAMPLES: dict[str, Callable[[], Samples]] = {}


def data_set(name: str):
    """Decorator of a function () -> `Samples`: registers it under ``name``."""

    def register(function: Callable[[], Samples]) -> Callable[[], Samples]:
        SAMPLES[name] = function
        return function

    return register


@lru_cache(maxsize=2)
def load(name: str) -> Samples:
    """The samples called ``name``; `InputError` if they are unknown or missing.

    ``torchvision:NAME`` and ``datasets:NAME`` are those of other libraries (`sources`).
    """
    library, colon, rest = name.partition(":")
    if colon and name not in SAMPLES:
        from mpisim.problems.torch.sources import LIBRARIES

        return choose(LIBRARIES, library, "problem.data, before ':'")(rest)
    return choose(SAMPLES, name, "problem.data")()


def first_of(whole: Samples, count: int) -> Samples:
    """The first ``count`` training samples and as many test samples; all of them for 0."""
    if count == 0:
        return whole
    return dataclasses.replace(whole, **{name: getattr(whole, name)[:count] for name in ARRAYS})


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
        parts.append(read_cifar(path))
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
