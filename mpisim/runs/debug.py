"""What ``run.debug`` checks after each round: what ranks share is the same on all, and no poison.

`mpisim.comm.debug` poisons what a method must not use. The log is that of a run without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mpisim.comm.debug import NOT_RECEIVED, SENT, SERVER_ONLY, DebugStar, mark_in, poisoned
from mpisim.core.arrays import is_tensor, to_host
from mpisim.core.errors import MethodError
from mpisim.core.state import Stateful
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.oracle import Oracle

REASONS = {
    SENT: "has a vector that was sent, as it was before compression; go on with decoded(), or set"
    " what the worker keeps of it before it is sent",
    SERVER_ONLY: "has what the server alone knows, a mean, or state AtServer; broadcast it",
    NOT_RECEIVED: "has what the server sent to clients of other ranks alone",
}


class DebugOracle(Oracle):
    """Remembers what it returned in this round: a worker may keep its gradients, sent or not."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.results: list[Any] = []

    def gradients(self, x: np.ndarray, clients: np.ndarray | None = None) -> np.ndarray:
        return self._remembered(super().gradients(x, clients))

    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, clients: np.ndarray | None = None
    ) -> np.ndarray:
        return self._remembered(super().batch_gradients(x, batch, clients))

    def batch_changes(self, x: np.ndarray, y: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return self._remembered(super().batch_changes(x, y, batch))

    def hessians(self, x: np.ndarray, clients: np.ndarray | None = None) -> np.ndarray:
        return self._remembered(super().hessians(x, clients))

    def _remembered(self, result: Any) -> Any:
        self.results.append(result)
        return result


class Debug:
    """The checks of one run, whose method has this name.

    parts : with declared state, by title; "estimator" among them
    """

    def __init__(
        self, method: str, star: DebugStar, oracle: DebugOracle, parts: Mapping[str, Stateful]
    ):
        self.method, self.star, self.oracle, self.parts = method, star, oracle, parts
        estimator = parts["estimator"]
        self._at_server = isinstance(estimator, Estimator) and estimator.server_point

    def begins(self) -> None:
        """The method's lines of a round begin."""
        self.star.kept, self.star.estimating = self._kept, True

    def ended(self, g: Any, x: Any) -> None:
        """Check the estimate g^k and the point x^{k+1} of a round that ends. Collective.

        `MethodError`, the same on all ranks, for what is wrong.
        """
        self.star.estimating = False
        facts: dict[str, Any] = {}
        facts |= {f"{name}, which is Shared,": _digest(v) for name, v in self._entries("Shared")}
        facts |= {f"the number of draws for {p!r}": n for p, n in self.star.draws().items()}
        kept = list(self._entries("PerWorker", "Shared"))
        if self.star.is_server:
            kept += self._entries("AtServer")
        if self.star.is_server or not self._at_server:
            kept.append(("the estimate", g))
        if not self._at_server:
            facts["the point"] = _digest(x)
        here = next(filter(None, (self._reason(name, value) for name, value in kept)), "")
        if name := self.star.uncharged:
            here = f"it calls star.{name}, which is for the log and costs no bits; send a message"
        everywhere = self.star.side.allgather((here, facts))
        reasons = [reason for reason, _ in everywhere if reason]
        reasons += _differences([facts for _, facts in everywhere])
        if reasons:
            raise MethodError(f"method {self.method!r}, round {self.star.round}: {reasons[0]}")
        self.oracle.results.clear()
        if not self.star.is_server:
            self._poison_state()

    def _entries(self, *places: str) -> Iterator[tuple[str, Any]]:
        """Names and values of state in these places; off the server, as far as x^k is known."""
        for title, part in self.parts.items():
            if title == "optimizer" and self._at_server:
                continue
            for name, value in part.state().items():
                if part.declared[name].place in places:
                    yield (f"its {name}" if title == "estimator" else f"{title}'s {name}"), value

    def _reason(self, name: str, value: Any) -> str:
        """What is wrong with a value that is kept; empty if nothing is."""
        mark = next(filter(None, map(mark_in, _leaves(value))), 0)
        where = "" if mark == SENT else f" on rank {self.star.rank}"
        return f"{name}{where} {REASONS[mark]}" if mark else ""

    def _kept(self, v: Any) -> bool:
        """Whether a vector is state, or what the oracle has returned."""
        state = (value for part in self.parts.values() for value in part.state().values())
        arrays = [leaf for value in (*state, *self.oracle.results) for leaf in _leaves(value)]
        v = to_host(v)
        return any(isinstance(one, np.ndarray) and np.may_share_memory(v, one) for one in arrays)

    def _poison_state(self) -> None:
        for part in self.parts.values():
            for name, value in part.state().items():
                number = is_tensor(value) or getattr(value, "dtype", np.dtype(int)).kind == "f"
                if part.declared[name].place == "AtServer" and number:
                    setattr(part, name, poisoned(value, SERVER_ONLY))


def _leaves(value: Any) -> Iterator[Any]:
    """What state consists of: arrays, on the host, and numbers, strings and None."""
    if isinstance(value, Mapping):
        value = [one for item in value.items() for one in item]
    if isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    else:
        yield to_host(value)


def _digest(value: Any) -> str:
    """The same text for equal state."""
    leaves = [(a.dtype.str, a.shape, a.tobytes()) for a in map(np.asarray, _leaves(value))]
    return hashlib.sha256(repr(leaves).encode()).hexdigest()


def _differences(facts: list[dict[str, Any]]) -> Iterator[str]:
    """What is not the same on all ranks."""
    for name in dict.fromkeys(name for one in facts for name in one):
        other = [r for r, one in enumerate(facts) if one.get(name) != facts[0].get(name)]
        if other:
            ranks = f"rank{'s' * (len(other) > 1)} {', '.join(map(str, other))}"
            yield f"{name} on {ranks} differs from rank 0"
