"""The links of hosts: rates, latency and their text, and what a message's bits are on a wire."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np

from mpisim.core.errors import InputError

SEGMENT, HEADERS = 1448, 66  # bytes of a full TCP segment on Ethernet, and of its headers
ENVELOPE = 22  # bytes of a message: 8 of Open MPI's TCP transport, 14 for matching
RATES = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
TIMES = {"us": 1e6, "ms": 1e3, "s": 1.0}  # in a second
SECONDS = {unit: 1 / count for unit, count in TIMES.items()}
UNLIMITED = "unlimited"
WORDS = ("shared", "ranks", "bucket")
FRAME = 1600  # bytes, enough for a full Ethernet frame
SLACK = 125e-6  # seconds by which a timer may be late without loss of speed
ALLOWED = (
    "RATE[/RATE][,LATENCY][,shared][,ranks][,bucket] with RATE in bit, kbit, mbit, gbit a second or"
    " unlimited, up and down, and LATENCY in us, ms, s, such as 100mbit,1ms or 10mbit/1gbit,shared"
)
_NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
_RATE = re.compile(rf"{_NUMBER}(bit|kbit|mbit|gbit)")
_TIME = re.compile(rf"{_NUMBER}(us|ms|s)")


@dataclasses.dataclass(frozen=True)
class Links:
    """The links between the hosts and the server.

    up, down : bits per second of each host's link to the server and back; infinity for no limit
    latency : seconds from one host to another, one way
    shared : whether the server has one link of the same speed, which all hosts share
    ranks : whether the workers of a rank share a host, as in the run, or each has its own
    bucket : whether links are token buckets, which send `burst` at once after a pause
    """

    up: float = float("inf")
    down: float = float("inf")
    latency: float = 0.0
    shared: bool = False
    ranks: bool = False
    bucket: bool = False

    def __str__(self) -> str:
        """The text that `parse` reads; equal links have equal texts."""
        rates = dict.fromkeys(_scaled(rate, RATES) for rate in (self.up, self.down))
        words = [word for word in WORDS if getattr(self, word)]
        times = [_scaled(self.latency, SECONDS)] * (self.latency > 0)
        return ",".join(["/".join(rates), *times, *words])


def burst(rate: float) -> float:
    """Bits that a token bucket of this rate lets pass at once: a frame and `SLACK` seconds."""
    return 8 * FRAME + rate * SLACK


def parse(text: str, where: str = "--network") -> Links:
    """Links from a text such as ``100mbit,1ms``; `InputError` says what is allowed."""
    attributes: dict[str, Any] = {}
    for part in text.lower().split(","):
        read = _part(part.strip())
        if read is None or attributes.keys() & read.keys():
            raise InputError(f"{where} {text}: {part!r} is not allowed; it must be {ALLOWED}")
        attributes |= read
    return Links(**attributes)


def _part(part: str) -> dict[str, Any] | None:
    """The attributes that one part of the text sets; None if it is not allowed."""
    if part in WORDS:
        return {part: True}
    if time := _TIME.fullmatch(part):
        latency = float(time[1]) / TIMES[time[2]]
        return {"latency": latency} if np.isfinite(latency) else None
    up, slash, down = part.partition("/")
    rates = _rate(up), _rate(down if slash else up)
    return {"up": rates[0], "down": rates[1]} if min(rates) > 0 else None


def _rate(text: str) -> float:
    """Bits per second; 0 where the text is not a rate."""
    if text == UNLIMITED:
        return float("inf")
    rate = _RATE.fullmatch(text)
    return float(rate[1]) * RATES[rate[2]] if rate else 0.0


def _scaled(value: float, units: dict[str, float]) -> str:
    """A number with 12 digits, in the largest unit that does not exceed it."""
    if value == float("inf"):
        return UNLIMITED
    fitting = [unit for unit, scale in units.items() if scale <= value] or list(units)[:1]
    return f"{value / units[fitting[-1]]:.12g}{fitting[-1]}"


def on_wire(bits: np.ndarray, messages: np.ndarray | int) -> np.ndarray:
    """Bits that cross a link for ``bits`` in this number of equally long messages."""
    length = np.divide(bits, 8 * messages, where=bits > 0, out=np.zeros_like(bits)) + ENVELOPE
    packets = np.ceil(length / SEGMENT)
    return np.where(bits > 0, 8.0 * messages * (length + HEADERS * packets), 0.0)
