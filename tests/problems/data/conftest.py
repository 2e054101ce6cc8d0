"""Fixtures of the data tests: an own cache and data folder, and small files in it."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mpisim.problems.data import cache as caching


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache folder, in which the rows of new files are kept, too."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MPISIM_CACHE", str(folder))
    monkeypatch.setattr(caching, "SETTLED_SECONDS", -1.0)
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder, the only one in MPISIM_DATA."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.setenv("MPISIM_DATA", str(folder))
    return folder


def random_dense(rows: int, features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A sparse random matrix, with all-zero rows and columns, and labels 1 and 2."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.4)
    matrix[0], matrix[:, 1] = 0.0, 0.0
    matrix[rows // 2, features - 1] = -7.0
    labels = np.where(rng.random(rows) < 0.4, 2.0, 1.0)
    labels[:2] = 1.0, 2.0
    return matrix, labels


def scaled(matrix: np.ndarray, scale: str, of: np.ndarray | None = None) -> np.ndarray:
    """By the largest absolute value of each row, or of each feature of the rows ``of``."""
    if scale == "none":
        return matrix
    axis, of = (1, matrix) if scale == "row-max-abs" else (0, matrix if of is None else of)
    largest = np.abs(of).max(axis=axis, keepdims=True)
    return matrix / np.where(largest == 0, 1, largest)


def to_text(matrix: np.ndarray, labels: np.ndarray) -> str:
    """LibSVM text of the non-zero entries."""
    text = ""
    for row, label in zip(matrix, labels, strict=True):
        entries = (f" {j + 1}:{float(row[j])!r}" for j in np.flatnonzero(row))
        text += f"{label:g}{''.join(entries)}\n"
    return text


def to_dense(data, indices, indptr, features: int) -> np.ndarray:
    """The dense matrix of compressed sparse rows."""
    return sparse.csr_array((data, indices, indptr), (len(indptr) - 1, features)).toarray()
