"""Samples from tensors and Datasets, and from the data sets of torchvision and Hugging Face."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mpisim.core.errors import InputError
from mpisim.problems.data.find import folders
from mpisim.problems.torch.samples import Samples

IMAGES = ("image", "img", "pixel_values")  # what columns of images are called at Hugging Face
LABELS = ("label", "labels", "fine_label")


def samples_of(train: Any, test: Any) -> Samples:
    """Samples from two pairs (features, targets) of tensors or arrays, or two PyTorch Datasets.

    A Dataset is anything with a length whose items are such pairs. Images become uint8, (channels,
    height, width). Targets that are integers are classes.
    """
    features, targets = _arrays(train)
    test_features, test_targets = _arrays(test)
    whole = np.concatenate([targets, test_targets])
    are_classes = whole.ndim == 1 and whole.dtype.kind in "iu"
    classes = int(whole.max(initial=-1)) + 1 if are_classes else 0
    return Samples(features, targets, test_features, test_targets, classes)


def _arrays(source: Any) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, ...) and targets (N, ...)."""
    source = getattr(source, "tensors", source)  # of a TensorDataset
    if isinstance(source, tuple):
        features, targets = (_on_host(part) for part in source)
    else:
        pairs = [source[i] for i in range(len(source))]
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
    sets = _library("torchvision", name).datasets
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
    datasets = _library("datasets", name)
    try:
        parts = [datasets.load_dataset(name, split=part) for part in ("train", "test")]
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"problem.data: datasets:{name} cannot be loaded: {said}") from None
    columns = list(parts[0].column_names)
    image, label = _column(IMAGES, columns, name), _column(LABELS, columns, name)
    return samples_of(*([(row[image], row[label]) for row in part] for part in parts))


def _library(library: str, name: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError:
        text = f'problem.data: "{library}:{name}" needs {library}: pip install {library}'
        raise InputError(text) from None


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
