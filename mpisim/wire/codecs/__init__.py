"""The codes of quantized vectors, by the names that the key ``codec`` gives them.

A code is a module with two functions, which write and read the messages of m workers: B norms and d
levels each.

encode(norms, bits, levels, limits, s, starts, payload)
    The bytes of the messages, each padded to bytes. Fills ``payload`` (m,), int64: the bits of each
    without padding, norms included.
decode(data, sizes, bits, limits, s, starts, norms, levels, payload)
    Fills ``norms``, ``levels`` (zero before) and ``payload``. Returns (worker, status); a status
    below 0 says why the worker's bytes are not exactly what `encode` writes (see `bits.check`).
    Linear in time and memory.
norms : array, shape (m, B), uint32 or uint64
    Floats of ``bits`` (32 or 64) bits, as unsigned integers.
levels : array, shape (m, d), int32 or int64
sizes : bytes of each message, shape (m,), int64
limits : the largest level allowed, shape (1 or m, 1 or d), int64
s : levels per unit of the norm, in the shape of ``limits``, float64
starts : shape (B + 1,); norm b belongs to the levels starts[b] to starts[b+1] - 1
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from mpisim.wire.codecs import elias, entropy, enumerative

__all__ = ["CODECS", "CodecName"]

CodecName = Literal["elias", "paper", "e1", "entropy"]
CODECS: dict[str, Any] = {"elias": elias, "paper": elias, "e1": enumerative, "entropy": entropy}
assert CODECS.keys() == set(get_args(CodecName))
