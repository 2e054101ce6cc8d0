"""Elias omega words as strings of "0" and "1", written from the definition: slow, and independent.

The reference for `mpisim.wire` in tests and benchmarks.
"""


def omega(n: int) -> str:
    """Start with "0"; while n > 1, prepend the digits of n, and let n be their number less 1."""
    if n < 1:
        raise ValueError(n)
    word = "0"
    while n > 1:
        digits = format(n, "b")
        word = digits + word
        n = len(digits) - 1
    return word


def encode(values) -> str:
    """The code words of all values, one after another."""
    return "".join([omega(int(n)) for n in values])


def decode(bits: str, pos: int) -> tuple[int, int]:
    """The omega number at ``pos``, and the position after it."""
    n = 1
    while bits[pos] == "1":
        n, pos = int(bits[pos : pos + n + 1], 2), pos + n + 1
    return n, pos + 1


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


def levels(bits: str, d: int) -> list[int]:
    """The d levels of which ``bits`` are the triples."""
    out, j, pos = [0] * d, -1, 0
    while pos < len(bits):
        gap, pos = decode(bits, pos)
        sign = -1 if bits[pos] == "1" else 1
        size, pos = decode(bits, pos + 1)
        j += gap
        out[j] = sign * size
    return out


def to_bytes(bits: str) -> bytes:
    """Eight bits a byte, the first one highest, and ones up to a whole byte."""
    bits += "1" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
