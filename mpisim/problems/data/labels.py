"""Labels of samples as the problems need them."""

from __future__ import annotations

import numpy as np

from mpisim.core.errors import InputError


def binary_labels(labels: np.ndarray, source: str) -> np.ndarray:
    """Map two distinct labels to -1 (the smaller) and +1, shape (rows,), float64.

    Raises `InputError` unless there are exactly two.
    """
    values = np.unique(labels)
    if len(values) != 2:
        shown = ", ".join(f"{v:g}" for v in values[:4]) + (", ..." if len(values) > 4 else "")
        raise InputError(
            f"{source}: {len(values)} distinct label{'s' * (len(values) != 1)} ({shown}); allowed"
            " for classification: exactly two"
        )
    return np.where(labels == values[1], 1.0, -1.0)
