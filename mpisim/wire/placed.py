"""Messages whose vectors are tensors on a device, while what crosses stays on the host.

They are packed on the device and copied to the host once, or the other way round. What they decode
to comes from what was packed alone. All are put in place by one scatter, worker by worker, as on
the host: a kind of message says what of it is an array of numbers for each worker, and what its
row i is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from mpisim.core.arrays import in_host_memory, to_device, to_host
from mpisim.core.numerics.tensors import dtype_of
from mpisim.wire.base import TENSOR_PACKERS, Form, KernelMessage, Message, Packed
from mpisim.wire.composed import Parts, PartsForm
from mpisim.wire.exponents import Exponents, ExponentsForm
from mpisim.wire.levels import Levels, LevelsForm
from mpisim.wire.signs import Signs, SignsForm
from mpisim.wire.sparse import Explicit, ExplicitForm, Seeded, SeededForm
from mpisim.wire.values import Dense, DenseForm

# i -> where in the vector, and the decoded values there, of worker i's message
Row = Callable[[int], tuple[Any, torch.Tensor]]
ALL = slice(None)


def placed(message: Message, device: Any) -> Message:
    """``message`` with decoded vectors on ``device``, decoded on the host if memory is shared."""
    if isinstance(message, Placed):
        return message
    kind = type(message)
    if in_host_memory(device) or not (kind is Parts or kind in KINDS):
        return Placed(message, device)
    if isinstance(message, Parts):
        return PlacedParts(message, device, [placed(part, device) for part in message.parts])
    arrays = [to_device(array, device) for array in KINDS[kind].arrays(message)]
    return Scattered(message, device, arrays)


class Placed(Message):
    """Encoded and decoded on the host; the decoded vectors are tensors on ``device``.

    host : the message that crosses
    """

    def __init__(self, host: Message, device: Any):
        self.host, self.device, self.form = host, device, host.form

    def encode(self) -> Packed:
        return self.host.encode()

    @property
    def payload_bits(self) -> np.ndarray:
        return self.host.payload_bits

    def layer_bits(self) -> np.ndarray | None:
        return self.host.layer_bits()

    def decoded(self) -> Any:
        return to_device(self.host.decoded(), self.device)

    def add_to(self, rows: Any) -> None:
        if in_host_memory(rows.device):
            self.host.add_to(rows.numpy())
        else:
            rows += self.decoded()

    def total(self) -> Any:
        return to_device(self.host.total(), self.device)


class Scattered(KernelMessage, Placed):
    """Decoded on the device, from ``arrays`` there. No coordinate of a worker occurs twice."""

    def __init__(self, host: Message, device: Any, arrays: list[torch.Tensor]):
        Placed.__init__(self, host, device)
        self.row: Row = KINDS[type(host)].row(host, device, *arrays)

    def put(self, rows: Any, add: bool) -> None:
        for i in range(self.form.workers):
            where, values = self.row(i)
            row = rows[i * len(rows) // self.form.workers]
            if add:
                row[where] += values
            else:
                row[where] = values

    def zeros(self, rows: int) -> Any:
        dtype = dtype_of(self.form.precision.arithmetic)
        return torch.zeros((rows, self.form.d), dtype=dtype, device=self.device)


class PlacedParts(Placed):
    """Vectors in ``parts``, each decoded on the device."""

    def __init__(self, host: Parts, device: Any, parts: list[Any]):
        super().__init__(host, device)
        self.parts = parts

    def decoded(self) -> Any:
        return torch.cat([part.decoded() for part in self.parts], 1)

    def add_to(self, rows: Any) -> None:
        rows += self.decoded()

    def total(self) -> Any:
        return torch.cat([part.total() for part in self.parts])


# The rows of each kind, from its arrays on the device.


def dense(host: Dense, device: Any, values: torch.Tensor) -> Row:
    dtype = _arithmetic(host.form)
    return lambda i: (ALL, values[i].to(dtype))


def explicit(host: Explicit, device: Any, indices: torch.Tensor, values: torch.Tensor) -> Row:
    dtype, scale = _arithmetic(host.form), host.form.scale
    return lambda i: (indices[i], scale * values[i].to(dtype))


def seeded(host: Seeded, device: Any, values: torch.Tensor) -> Row:
    indices, scale = _coordinates(host.form, device)
    decoded = scale * values.to(_arithmetic(host.form))
    rows = [slice(*ends) for ends in pairwise(host.form.ptr.tolist())]
    return lambda i: (indices[rows[i]], decoded[rows[i]])


def signs(host: Signs, device: Any, bits: torch.Tensor) -> Row:
    form = host.form
    scales = to_device(host.scales, device).to(_arithmetic(form))
    lengths = _layer_lengths(form, device) if form.layers > 1 else None
    signs_of_bytes = _signs_of_bytes(scales.dtype, device)

    def row(i: int) -> tuple[slice, torch.Tensor]:
        values = signs_of_bytes.index_select(0, bits[i].int()).view(-1)[: form.d]
        if lengths is None:
            return ALL, values * scales[i]
        return ALL, values * torch.repeat_interleave(scales[i], lengths, output_size=form.d)

    return row


def levels(host: Levels, device: Any, levels: torch.Tensor) -> Row:
    form, dtype = host.form, _arithmetic(host.form)
    norms = to_device(host.norms, device).double()

    def row(i: int) -> tuple[slice, torch.Tensor]:
        values = levels[i].double() / steps(form, i, device)
        for b, (start, stop) in enumerate(pairwise(form.starts.tolist())):
            values[start:stop] *= norms[i, b]
        return ALL, values.to(dtype)

    return row


def exponents(host: Exponents, device: Any, codes: torch.Tensor) -> Row:
    values = to_device(host.form.values, device)
    return lambda i: (ALL, values.index_select(0, codes[i].int()))


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a kind of message is decoded on a device.

    arrays : what of a message on the host is copied, as `row` takes it
    row : rows of a message, from the device and its arrays there
    """

    arrays: Callable[[Any], list[np.ndarray]]
    row: Callable[..., Row]


KINDS: dict[type[Message], Kind] = {
    Dense: Kind(lambda host: [host.values], dense),
    Explicit: Kind(lambda host: [host.indices, host.values], explicit),
    Seeded: Kind(lambda host: [host.values], seeded),
    Signs: Kind(lambda host: [host.bits], signs),
    Levels: Kind(lambda host: [host.levels.astype(level_type(host.form), copy=False)], levels),
    Exponents: Kind(lambda host: [host.codes.view(np.int16)], exponents),
}


# How forms pack tensors: what was packed is copied to the host, and stays on the device.


def _pack_dense(form: DenseForm, v: torch.Tensor) -> Message:
    values = v.to(_wire(form), copy=True)
    return Scattered(Dense(form, to_host(values)), v.device, [values])


def _pack_explicit(form: ExplicitForm, v: torch.Tensor, indices: torch.Tensor) -> Message:
    values = v.gather(1, indices).to(_wire(form))
    host = Explicit(form, to_host(indices), to_host(values))
    return Scattered(host, v.device, [indices, values])


def _pack_seeded(form: SeededForm, v: torch.Tensor) -> Message:
    indices, _ = _coordinates(form, v.device)
    ends = pairwise(form.ptr.tolist())
    parts = [row[indices[slice(*end)]] for row, end in zip(v, ends, strict=True)]
    values = (torch.cat(parts) if parts else v.new_empty(0)).to(_wire(form))
    return Scattered(Seeded(form, to_host(values)), v.device, [values])


def _pack_signs(form: SignsForm, scales: np.ndarray, v: torch.Tensor) -> Message:
    """``scales`` on the host; the signs as `numpy.packbits` of v < 0, with ones to the byte."""
    ones = torch.ones((len(v), -(-form.d // 8) * 8), dtype=torch.uint8, device=v.device)
    ones[:, : form.d] = v < 0
    bits = ((ones.view(torch.int64) * GATHER >> 56) & 0xFF).to(torch.uint8)
    host = Signs(form, scales, to_host(bits))
    return Scattered(host, v.device, [bits])


def _pack_levels(form: LevelsForm, norms: np.ndarray, levels: torch.Tensor) -> Message:
    """``norms`` on the host, ``levels`` (m, d)."""
    crossed = to_host(levels).astype(form.dtype, copy=False)
    return Scattered(Levels(form, norms, crossed), levels.device, [levels])


def _pack_exponents(form: ExponentsForm, codes: torch.Tensor) -> Message:
    """``codes`` (m, d), int16."""
    host = Exponents(form, to_host(codes).view(np.uint16))
    return Scattered(host, codes.device, [codes])


def _pack_parts(form: PartsForm, parts: list[Any], device: Any) -> Message:
    return PlacedParts(Parts(form, tuple(part.host for part in parts)), device, parts)


PACKERS: dict[type[Form], Callable[..., Message]] = {
    DenseForm: _pack_dense,
    ExplicitForm: _pack_explicit,
    SeededForm: _pack_seeded,
    SignsForm: _pack_signs,
    LevelsForm: _pack_levels,
    ExponentsForm: _pack_exponents,
    PartsForm: _pack_parts,
}
TENSOR_PACKERS.update(PACKERS)


# What both sides know, copied once for each form.

# Times 8 bytes that are 0 or 1, as one word: its highest byte has one bit of each, the first byte's
# in the highest place. No other bits fall there, and none carry into it.
GATHER = 0x8040201008040201 - (1 << 64)


@lru_cache(maxsize=16)
def _coordinates(form: SeededForm, device: Any) -> tuple[torch.Tensor, Any]:
    """Indices and scale of a form on the device."""
    scale = form.scale.astype(form.precision.arithmetic, copy=False)
    factor = float(scale[0]) if scale.size == 1 else to_device(scale, device)
    return to_device(form.indices, device), factor


@lru_cache(maxsize=16)
def _s_by_worker(form: LevelsForm, device: Any) -> torch.Tensor:
    return to_device(form.s_by_worker, device)


@lru_cache(maxsize=16)
def _layer_lengths(form: SignsForm, device: Any) -> torch.Tensor:
    """Coordinates of each layer."""
    return to_device(np.diff(np.asarray(form.starts)), device)


@lru_cache(maxsize=4)
def _signs_of_bytes(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """The eight signs, -1 or +1, that each byte stands for: shape (256, 8)."""
    places = torch.arange(7, -1, -1, device=device)
    bits = (torch.arange(256, device=device)[:, None] >> places) & 1
    return 1 - 2 * bits.to(dtype)


def steps(form: LevelsForm, i: int, device: Any) -> Any:
    """s of worker i: a number, or one for each coordinate, (d,)."""
    s, row = form.s_by_worker, min(i, len(form.s_by_worker) - 1)
    return float(s[row, 0]) if s.shape[1] == 1 else _s_by_worker(form, device)[row]


def level_type(form: LevelsForm) -> np.dtype:
    """The shortest integers that hold the levels of a form."""
    return next(np.dtype(f"i{size}") for size in (1, 2, 4, 8) if form.top < 1 << (8 * size - 1))


def _arithmetic(form: Form) -> torch.dtype:
    return dtype_of(form.precision.arithmetic)


def _wire(form: Form) -> torch.dtype:
    return dtype_of(form.precision.wire)
