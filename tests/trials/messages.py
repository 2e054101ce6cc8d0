"""python -m tests.trials.messages [--messages N] [--seed S] [--jobs J]: corrupted real messages.

Every kind of message and every compressor's; bits are flipped, ends are cut, and parts of another
message of the same kind, or noise, are spliced in. A decoder must give a message that encodes to
the very bytes that were decoded, or raise `WireError`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np

from mpisim.core.errors import WireError
from mpisim.wire.base import Form, Message
from tests.compressors.cases import CASES, draw, name_of
from tests.wire.messages import KINDS, PRECISIONS, random_message

BATCH = 200  # corrupted copies of one pair of messages
DIMENSIONS = (1, 2, 7, 8, 33, 60, 130, 1100)


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
    return name_of(case), compressor.form(at), messages


def corrupted(
    messages: list[Message], rng: np.random.Generator, count: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """``count`` times bytes and sizes that are nearly those of the first message."""
    one, two = (message.encode() for message in messages)
    for how in rng.integers(0, 10, count).tolist():
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
    """ "message", "refused", or what is wrong."""
    try:
        message = form.decode(data, sizes)
    except WireError:
        return "refused"
    packed = message.encode()
    if packed.data.tobytes() != data.tobytes() or not np.array_equal(packed.sizes, sizes):
        return f"reads {data.tobytes().hex()} {sizes} and writes {packed.data.tobytes().hex()}"
    return "message"


def work(task: tuple[int, int, int]) -> Counter:
    """One batch of one kind: how often what happened."""
    seed, kind, number = task
    rng = np.random.default_rng([seed, kind, number])
    name, form, messages = pair(kind, rng)
    found: Counter = Counter()
    with np.errstate(all="ignore"):
        for data, sizes in corrupted(messages, rng, BATCH):
            try:
                outcome = check(form, data, sizes)
            except BaseException as error:  # also the panic of a library in another language
                outcome = f"{type(error).__name__}: {error}"
            if outcome not in ("message", "refused"):
                outcome = f"seed {seed}, kind {kind}, batch {number}: {outcome}"
            found[name, outcome] += 1
    return found


def main() -> int:
    """Try them all; 1 if there is something wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    kinds = len(KINDS) + len(CASES)
    batches = -(-args.messages // (BATCH * kinds))
    tasks = ((args.seed, kind, number) for number in range(batches) for kind in range(kinds))
    found: Counter = Counter()
    start = said = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for counts in pool.imap_unordered(work, tasks, chunksize=kinds):
            found += counts
            if time.monotonic() - said > 10:
                said = time.monotonic()
                rate = found.total() / (said - start)
                print(f"{found.total():,} messages, {rate:,.0f} a second", flush=True)
    seconds = time.monotonic() - start
    return report(found, seconds)


def report(found: Counter, seconds: float) -> int:
    """Print a line for each kind, and all that is wrong; 1 if there is something."""
    names = sorted({name for name, _ in found})
    for name in names:
        read, refused = found[name, "message"], found[name, "refused"]
        print(f"{name:<44}{read:>12,} read{refused:>12,} refused")
    wrong = [(name, what) for name, what in found if what not in ("message", "refused")]
    for name, what in wrong[:50]:
        print(f"WRONG {name}: {what[:300]}")
    rate = found.total() / seconds
    print(f"{found.total():,} corrupted messages, {rate:,.0f} a second, {len(wrong)} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
