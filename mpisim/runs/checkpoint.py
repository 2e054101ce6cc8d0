"""Checkpoints: all that a run needs to continue as if it had never stopped, on any number of ranks.

Randomness is addressed, so the round replaces the state of a generator. A checkpoint is an HDF5
file after a block of text with its sha256. The previous checkpoint is kept beside it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py

from mpisim.core.errors import InputError
from mpisim.core.files import image, write_atomic, writing
from mpisim.runs.identity import require_same
from mpisim.runs.log.journal import Mark
from mpisim.runs.log.untrusted import DAMAGE, in_words, members

FORMAT = 4
HEADER = 512  # bytes, a multiple of 512: HDF5 looks for its signature there

CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "dict": dict}
State = dict[str, Any]  # arrays and numbers by name, in nested tables


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint.

    state : before a round, as `RunState.dump` returns it; empty before the first one is saved
    log : of the rows before that round
    changes : what executed the run then, and was accepted to differ now, as text
    """

    state: State
    log: Mark
    changes: str = ""


def path_for(log: Path) -> Path:
    """The path of a log's checkpoint."""
    return log.with_name(log.name + ".ckpt")


def former(path: Path) -> Path:
    """The path of the checkpoint before the one at ``path``."""
    return path.with_name(path.name + ".old")


def save(path: Path, identity: dict[str, str], state: State, log: Mark, keep: bool = True) -> None:
    """Write a checkpoint whole or not at all; raises `OutputError`.

    Once it is on the disk, the checkpoint that was at ``path`` becomes the `former` one, or, if
    not ``keep``, is replaced.
    """

    def fill(file: h5py.File) -> None:
        file.attrs["format"] = FORMAT
        file["identity"] = json.dumps(identity)
        _write(file.create_group("state"), state)
        file["log"] = log.text()

    content = image(fill)
    with writing(path):
        write_atomic(path, (_header(content), content), keep=former(path) if keep else None)


def load(
    path: Path,
    identity: dict[str, str],
    require: Callable[[Checkpoint], None] = lambda _: None,
    accept: bool = False,
) -> tuple[Checkpoint, str]:
    """The last checkpoint that can be used, and a note if it is not the one at ``path``.

    A checkpoint is not used if it is damaged, or if ``require`` raises `InputError` for it.
    `InputError` names a difference to ``identity`` that is not accepted, or says why none can be
    used.
    """
    faults = []
    for file in (path, former(path)):
        try:
            last = _read_checked(file, identity, require, accept)
        except (OSError, _Unusable) as error:
            faults.append(getattr(error, "strerror", None) or str(error))
            continue
        round = int(last.state["round"]) if last.state else 0
        note = f"{path}: {faults[0]}; continuing from {file}, round {round}" if faults else ""
        return last, note
    raise InputError(f"{path}: cannot be resumed from: {faults[0]}")


class _Unusable(Exception):
    """Why a checkpoint cannot be used."""


def _read_checked(
    path: Path, identity: dict[str, str], require: Callable[[Checkpoint], None], accept: bool
) -> Checkpoint:
    """The checkpoint at ``path``.

    Raises `OSError`, `_Unusable`, or `InputError` for a difference to ``identity``.
    """
    content = path.read_bytes()
    if content[:HEADER] != _header(content[HEADER:]):
        raise _Unusable("damaged: its checksum does not fit")
    try:
        # in this process: HDF5 gets what mpisim has written
        with h5py.File(io.BytesIO(content[HEADER:]), "r") as file:
            inside, form = _read(file), str(file.attrs["format"])
            before = {"format": form} | json.loads(inside["identity"])
            changes = require_same(path, before, {"format": str(FORMAT)} | identity, accept)
            state = dict(inside.get("state", {}))
            checkpoint = Checkpoint(state, Mark.of_text(inside["log"]), changes)
    except DAMAGE as error:
        raise _Unusable(f"damaged: {in_words(error)}") from None
    try:
        require(checkpoint)
    except InputError as error:
        raise _Unusable(str(error)) from None
    return checkpoint


def packed(value: Any, leaf: Callable[[Any], tuple[str, Any]]) -> State:
    """``value`` as HDF5 can hold it, with its exact types: a ``tree`` in JSON, arrays by number.

    leaf : gives the kind and the array of what is no container, no plain number and no text
    """
    arrays: State = {}
    return {"tree": json.dumps(_node(value, leaf, arrays))} | arrays


def unpacked(saved: State, leaf: Callable[[str, Any], Any]) -> Any:
    """The inverse of `packed`; ``leaf`` makes the value of a kind and an array."""
    return _value(json.loads(saved["tree"]), leaf, saved)


# Not inside the two above: a function that calls itself there is a cycle, which keeps the arrays.
def _node(v: Any, leaf: Callable[[Any], tuple[str, Any]], arrays: State) -> Any:
    if v is None or type(v) in (bool, int, float, str):
        return v
    kind = type(v).__name__
    if type(v) is CONTAINERS.get(kind):
        inside = v.items() if kind == "dict" else v
        return {kind: [_node(inner, leaf, arrays) for inner in inside]}
    kind, array = leaf(v)
    number = str(len(arrays))
    arrays[number] = array
    return {kind: number}


def _value(node: Any, leaf: Callable[[str, Any], Any], saved: State) -> Any:
    if not isinstance(node, dict):
        return node
    [(kind, inside)] = node.items()
    if kind in CONTAINERS:
        return CONTAINERS[kind](_value(inner, leaf, saved) for inner in inside)
    return leaf(kind, saved[inside])


def _header(content: bytes) -> bytes:
    text = f"mpisim checkpoint, sha256 {hashlib.sha256(content).hexdigest()}\n"
    return text.encode().ljust(HEADER)


def _write(group: h5py.Group, state: State) -> None:
    for name, value in state.items():
        if isinstance(value, dict):
            _write(group.create_group(name), value)
        else:
            group[name] = value


def _read(group: h5py.Group) -> State:
    """The content of a group.

    `ValueError` if some of it lies elsewhere, where it may change, or is more than what is stored
    of it: a checkpoint is not compressed.
    """
    try:
        inside = members(group)
    except InputError:
        raise ValueError(f"content of {group.name} lies in other files") from None
    for item in inside.values():
        if isinstance(item, h5py.Dataset) and item.nbytes > item.id.get_storage_size():
            raise ValueError(f"{item.name} has more bytes than are stored of it")
    return {
        name: _read(item) if isinstance(item, h5py.Group) else item[()]
        for name, item in inside.items()
    }
