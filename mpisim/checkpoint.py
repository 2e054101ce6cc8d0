"""Checkpoints: all that a run needs to go on as if it had never stopped, on any number of ranks.

Randomness is addressed, so no generator state is kept: the round is enough.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from mpisim import __version__
from mpisim.errors import InputError, OutputError
from mpisim.files import image, write_whole

FORMAT = 1
FREE = ("run.rounds", "run.checkpoint_seconds", "run.layout", "title")  # may differ on resume

State = dict[str, Any]


def path_for(log: Path) -> Path:
    """Where the checkpoint of a log lies: beside it."""
    return log.with_name(log.name + ".ckpt")


def save(path: Path, identity: dict[str, str], state: State) -> None:
    """Write a checkpoint whole or not at all; `OutputError` where that fails."""

    def fill(file: h5py.File) -> None:
        file.attrs.update({"format": FORMAT, "package_version": __version__} | identity)
        for name, value in state.items():
            file[name] = value

    try:
        write_whole(path, image(fill))
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def load(path: Path, identity: dict[str, str]) -> State:
    """The state in a checkpoint of the same experiment; `InputError` names a difference."""
    try:
        with h5py.File(path, "r", locking=False) as file:
            _same(path, "format", file.attrs["format"], FORMAT)
            _same(path, "package_version", file.attrs["package_version"], __version__)
            for name, value in identity.items():
                _same(path, name, file.attrs[name], value)
            return {name: data[()] for name, data in _datasets(file)}
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no checkpoint to resume from; leave out --resume"
        ) from None
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise InputError(f"{path}: not a readable checkpoint: {error}") from None


def _datasets(file: h5py.File) -> list[tuple[str, h5py.Dataset]]:
    found: list[tuple[str, h5py.Dataset]] = []
    file.visititems(
        lambda name, item: found.append((name, item)) if isinstance(item, h5py.Dataset) else None
    )
    return found


def _same(path: Path, name: str, theirs: Any, ours: Any) -> None:
    if theirs != ours:
        raise InputError(f"{path}: is a checkpoint with {name} = {theirs!r}, this run has {ours!r}")


def identity(table: dict[str, Any], problem: str, n: int) -> dict[str, str]:
    """What must agree between a checkpoint and the run that resumes it, by name."""
    flat = {"problem identity": problem, "workers": str(n)}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else key, inner)
        elif prefix not in FREE:
            flat[prefix] = repr(value)

    walk("", table)
    return flat


def flatten(prefix: str, arrays: dict[str, np.ndarray]) -> State:
    """{prefix/name: array}."""
    return {f"{prefix}/{name}": value for name, value in arrays.items()}


def pick(prefix: str, state: State) -> State:
    """The inverse of `flatten`."""
    return {
        name[len(prefix) + 1 :]: value
        for name, value in state.items()
        if name.startswith(prefix + "/")
    }
