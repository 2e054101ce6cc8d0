"""Corrupted real messages: of every kind, and every compressor's.

Bits are flipped, ends are cut, and parts of another message of the same kind, or noise, are spliced
in. A decoder must give a message that encodes to the very bytes that were decoded, or raise
`WireError`.
"""

from collections.abc import Iterator

import numpy as np

from mpisim.core.errors import WireError
from mpisim.wire.base import Form, Message
from tests.compressors.cases import CASES, draw, name_of
from tests.wire.messages import KINDS, PRECISIONS, random_message

ALL = len(KINDS) + len(CASES)
COPIES, PAIRS = 200, -(-100_000 // (200 * ALL))  # of a pair of messages, and pairs of each kind
DIMENSIONS = (1, 2, 7, 8, 33, 60, 130, 1100)


def attempt(trial: tuple[int, int]) -> tuple[str, bool]:
    """What is wrong with what decoders made of about 100,000 of them; it always happens.

    trial : a seed and a number
    """
    wrong = []
    for kind, batch in np.ndindex(ALL, PAIRS):
        rng = np.random.default_rng([*trial, kind, batch])
        name, form, messages = pair(kind, rng)
        with np.errstate(all="ignore"):
            for data, sizes in corrupted(messages, rng):
                if problem := check(form, data, sizes):
                    wrong.append(f"{name}: {problem}")
    return "; ".join(wrong[:9]), True


def pair(kind: int, rng: np.random.Generator) -> tuple[str, Form, list[Message]]:
    """Two messages that the same form reads, of the kind with this number."""
    d, m = int(rng.choice(DIMENSIONS)), int(rng.choice([1, 1, 2, 3]))
    precision = PRECISIONS[rng.integers(len(PRECISIONS))]
    if kind < len(KINDS):
        message = random_message(KINDS[kind], rng, d, m, precision)
        return KINDS[kind], message.form, [message, message]
    case = CASES[kind - len(KINDS)]
    compressor = case.bind(max(d, 7), 40, precision)
    at = draw(m, round=int(rng.integers(1000)))
    vectors = rng.standard_normal((2, m, compressor.d)) * 10.0 ** rng.uniform(-3, 3, (2, m, 1))
    messages = [compressor.compress(v, at) for v in vectors]
    return name_of(case.table), compressor.form(at), messages


def corrupted(
    messages: list[Message], rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Bytes and sizes that are nearly those of the first message."""
    one, two = (message.encode() for message in messages)
    for how in rng.integers(0, 10, COPIES).tolist():
        data, sizes = one.data.copy(), one.sizes.copy()
        size = data.size
        if size and how < 6:
            flips = rng.integers(0, 8 * size, 1 + how % 3)
            for flip in flips.tolist():
                data[flip >> 3] ^= 1 << (flip & 7)
        if size and 4 < how < 9:
            first, length = rng.integers(0, size), int(rng.integers(1, 9))
            other = two.data[first : first + length] if how % 2 else rng.bytes(length)
            piece = np.frombuffer(bytes(other), np.uint8)[: size - first]
            data[first : first + piece.size] = piece
        if how > 7:
            worker = int(rng.integers(sizes.size))
            cut = int(min(sizes[worker], rng.integers(1, 12)))
            end = int(sizes[: worker + 1].sum())
            data = np.delete(data, np.s_[end - cut : end])
            sizes[worker] -= cut
        yield data, sizes


def check(form: Form, data: np.ndarray, sizes: np.ndarray) -> str:
    """What is wrong with what is decoded."""
    try:
        packed = form.decode(data, sizes).encode()
    except WireError:
        return ""
    except BaseException as error:  # also the panic of a library in another language
        return f"{data.tobytes().hex()} {sizes}: {type(error).__name__}: {error}"
    if packed.data.tobytes() == data.tobytes() and np.array_equal(packed.sizes, sizes):
        return ""
    return f"reads {data.tobytes().hex()} {sizes} and writes {packed.data.tobytes().hex()}"
