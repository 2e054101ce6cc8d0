"""Checkpoints: all that a run needs to continue as if it had never stopped, on any number of ranks.

Randomness is addressed, so the round replaces the state of a generator. A checkpoint is an HDF5
file after a block of text with its sha256. The previous checkpoint is kept beside it.
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
HEADER = 512  # bytes, a multiple of 512: HDF5 looks for its signature there

State = dict[str, Any]  # arrays and numbers by name, in nested tables


def path_for(log: Path) -> Path:
    """The path of a log's checkpoint."""
    return log.with_name(log.name + ".ckpt")


def former(path: Path) -> Path:
    """The path of the checkpoint before the one at ``path``."""
    return path.with_name(path.name + ".old")


def discard(path: Path) -> None:
    """Remove the checkpoints of a log that starts anew."""
    for file in (path, former(path)):
        file.unlink(missing_ok=True)


def save(path: Path, identity: dict[str, str], state: State) -> None:
    """Write a checkpoint whole or not at all; raises `OutputError`.

    Once it is on the disk, the checkpoint that was at ``path`` becomes the `former` one.
    """

    def fill(file: h5py.File) -> None:
        file.attrs["format"] = FORMAT
        file["identity"] = json.dumps(identity)
        _write(file.create_group("state"), state)

    content = image(fill)
    try:
        write_whole(path, _header(content) + content, keep=former(path))
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def load(path: Path, identity: dict[str, str]) -> tuple[bytes, str]:
    """The last sound checkpoint, for `state_of`, and a note if it is not the one at ``path``.

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
        _check_identity(file, content, identity)
        round = int(state_of(content)["round"])
        note = f"{path}: {faults[0]}; continuing from {file}, round {round}" if faults else ""
        return content, note
    if path.exists() or former(path).exists():
        raise InputError(f"{path}: not a readable checkpoint: {faults[0]}; --force starts anew")
    raise InputError(f"{path}: there is no checkpoint to resume from; leave out --resume")


def state_of(content: bytes) -> State:
    """The state in a checkpoint that `load` returned."""
    with h5py.File(io.BytesIO(content[HEADER:]), "r") as file:
        return _read(file["state"])


def _header(content: bytes) -> bytes:
    text = f"mpisim checkpoint, sha256 {hashlib.sha256(content).hexdigest()}\n"
    return text.encode().ljust(HEADER)


def _check_identity(path: Path, content: bytes, identity: dict[str, str]) -> None:
    """`InputError` for the first difference between the checkpoint's identity and the run's."""
    with h5py.File(io.BytesIO(content[HEADER:]), "r") as file:
        found = {"format": str(file.attrs["format"])}
        if "identity" in file:
            found |= json.loads(file["identity"][()])
    for name, ours in ({"format": str(FORMAT)} | identity).items():
        theirs = found.get(name, "nothing")
        if theirs != ours:
            raise InputError(f"{path}: is a checkpoint with {name} = {theirs}, this run has {ours}")


def _write(group: h5py.Group, state: State) -> None:
    for name, value in state.items():
        if isinstance(value, dict):
            _write(group.create_group(name), value)
        else:
            group[name] = value


def _read(group: h5py.Group) -> State:
    return {
        name: _read(item) if isinstance(item, h5py.Group) else item[()]
        for name, item in group.items()
    }


def identity(
    table: dict[str, Any], parameters: dict[str, Any], gamma: float, problem: str, n: int
) -> dict[str, str]:
    """What must agree between a checkpoint and the run that resumes it, by name.

    table : the experiment's; parameters, gamma : the resolved parameters of the method, and its
    step; problem : the identity of the data; n : workers.
    """
    libraries = ("numpy", "scipy", "numba")  # their versions may change the last bits
    found = {"mpisim version": VERSION} | {f"{name} version": version(name) for name in libraries}
    found |= {"problem identity": problem, "workers": str(n)}
    found |= {name: text for name, text in flat(table).items() if name not in FREE}
    found |= flat({"method": {name.rstrip("_"): value for name, value in parameters.items()}})
    return found | {"step size": repr(float(gamma))}
