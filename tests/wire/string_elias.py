"""Elias codes as strings of "0" and "1", written from the definitions: slow, and independent.

The reference for `mpisim.wire` in tests and benchmarks.
"""

from __future__ import annotations


def omega(n: int) -> str:
    """Start with "0"; while n > 1, prepend the digits of n and go on with their number less one."""
    if n < 1:
        raise ValueError(n)
    word = "0"
    while n > 1:
        digits = format(n, "b")
        word = digits + word
        n = len(digits) - 1
    return word


def gamma(n: int) -> str:
    """As many zeros as n has digits after the first, then the digits of n."""
    digits = format(n, "b")
    return "0" * (len(digits) - 1) + digits


def delta(n: int) -> str:
    """The number of digits in gamma, then the digits without the leading one."""
    digits = format(n, "b")
    return gamma(len(digits)) + digits[1:]


def encode(values, code=omega) -> str:
    """The code words of all values, one behind the other."""
    return "".join([code(int(n)) for n in values])


def decode(bits: str, count: int) -> list[int]:
    """``count`` omega numbers from the start of ``bits``."""
    values, pos = [], 0
    for _ in range(count):
        n = 1
        while bits[pos] == "1":
            n, pos = int(bits[pos : pos + n + 1], 2), pos + n + 1
        pos += 1
        values.append(n)
    return values


def gaps(indices) -> list[int]:
    """Differences of ascending indices; the one before the first is -1."""
    last, out = -1, []
    for j in indices:
        out.append(int(j) - last)
        last = int(j)
    return out


def triples(levels) -> str:
    """omega(gap), sign, omega(|level|) of each non-zero level."""
    nonzero = [j for j, level in enumerate(levels) if level]
    word = ""
    for gap, j in zip(gaps(nonzero), nonzero, strict=True):
        word += omega(gap) + ("1" if levels[j] < 0 else "0") + omega(abs(int(levels[j])))
    return word


def pad(bits: str) -> str:
    """With ones up to a whole byte."""
    return bits + "1" * (-len(bits) % 8)


def to_bytes(bits: str) -> bytes:
    """Eight bits a byte, the first one highest."""
    bits = pad(bits)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
