"""Checkpoints: all that a run needs to go on as if it had never stopped, on any number of ranks.

Randomness is addressed, so no generator state is kept: the round is enough. A checkpoint is an
HDF5 file behind one block of text with its sha256; the one before it is kept beside it.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import h5py

from mpisim.core.atomic_file import image, write_whole
from mpisim.core.errors import InputError, OutputError
from mpisim.core.schema import flat
from mpisim.core.version import VERSION
from mpisim.runs.sysinfo import version

FORMAT = 2
# What may differ on resume.
FREE = ("run.rounds", "run.checkpoint_seconds", "run.layout", "title", "plugin")
ARITHMETIC = ("numpy", "scipy", "numba")  # libraries whose version may change the last bits
HEADER = 512  # bytes; HDF5 looks for its signature there, too
TITLE = b"mpisim checkpoint, sha256 "

State = dict[str, Any]


def path_for(log: Path) -> Path:
    """Where the checkpoint of a log lies: beside it."""
    return log.with_name(log.name + ".ckpt")


def former(path: Path) -> Path:
    """Where the checkpoint before the one at ``path`` lies."""
    return path.with_name(path.name + ".old")


def discard(path: Path) -> None:
    """Remove the checkpoints of a log that starts anew."""
    for file in (path, former(path)):
        file.unlink(missing_ok=True)


def save(path: Path, identity: dict[str, str], state: State) -> None:
    """Write a checkpoint whole or not at all; `OutputError` where that fails.

    The checkpoint that is at ``path`` becomes the `former` one once the new one is on the disk.
    """

    def fill(file: h5py.File) -> None:
        file.attrs["format"] = FORMAT
        file["identity"] = json.dumps(identity)
        for name, value in state.items():
            file[f"state/{name}"] = value

    content = image(fill)
    try:
        write_whole(path, _header(content) + content, keep=former(path))
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def load(path: Path, identity: dict[str, str]) -> tuple[bytes, str]:
    """The last sound checkpoint, for `state_of`, and a line where it is not the one at ``path``.

    `InputError` names a difference to ``identity``, or says why there is no checkpoint.
    """
    faults = []
    for file in (path, former(path)):
        try:
            content = file.read_bytes()
        except OSError as error:
            faults.append(error.strerror)
            continue
        if content[:HEADER] != _header(content[HEADER:]):
            faults.append("damaged: its checksum does not fit")
            continue
        _refuse_another(file, content, identity)
        round = int(state_of(content)["round"])
        note = f"{path}: {faults[0]}; going on from {file}, round {round}" if faults else ""
        return content, note
    if path.exists() or former(path).exists():
        raise InputError(f"{path}: not a readable checkpoint: {faults[0]}; --force starts anew")
    raise InputError(f"{path}: there is no checkpoint to resume from; leave out --resume")


def state_of(content: bytes) -> State:
    """The state in a checkpoint that `load` gave."""
    with h5py.File(io.BytesIO(content[HEADER:]), "r") as file:
        return {name: data[()] for name, data in _datasets(file["state"])}


def _header(content: bytes) -> bytes:
    return (TITLE + hashlib.sha256(content).hexdigest().encode() + b"\n").ljust(HEADER)


def _refuse_another(path: Path, content: bytes, identity: dict[str, str]) -> None:
    """`InputError` for the first difference between the checkpoint's identity and the run's."""
    with h5py.File(io.BytesIO(content[HEADER:]), "r") as file:
        found = {"format": str(file.attrs["format"])}
        if "identity" in file:
            found |= json.loads(file["identity"][()])
    for name, ours in ({"format": str(FORMAT)} | identity).items():
        theirs = found.get(name, "nothing")
        if theirs != ours:
            raise InputError(f"{path}: is a checkpoint with {name} = {theirs}, this run has {ours}")


def _datasets(group: h5py.Group) -> list[tuple[str, h5py.Dataset]]:
    found: list[tuple[str, h5py.Dataset]] = []
    group.visititems(
        lambda name, item: found.append((name, item)) if isinstance(item, h5py.Dataset) else None
    )
    return found


def identity(
    table: dict[str, Any], parameters: dict[str, Any], gamma: float, problem: str, n: int
) -> dict[str, str]:
    """What must agree between a checkpoint and the run that resumes it, by name.

    table : the experiment's; parameters, gamma : the method's and the step, as resolved;
    problem : the identity of the data; n : workers.
    """
    found = {"mpisim version": VERSION}
    found |= {f"{name} version": version(name) for name in ARITHMETIC}
    found |= {"problem identity": problem, "workers": str(n)}
    found |= {name: text for name, text in flat(table).items() if name not in FREE}
    found |= flat({"method": {name.rstrip("_"): value for name, value in parameters.items()}})
    return found | {"step size": repr(float(gamma))}


def flatten(prefix: str, arrays: State) -> State:
    """{prefix/name: array}."""
    return {f"{prefix}/{name}": value for name, value in arrays.items()}


def pick(prefix: str, state: State) -> State:
    """The inverse of `flatten`."""
    return {
        name[len(prefix) + 1 :]: value
        for name, value in state.items()
        if name.startswith(prefix + "/")
    }
