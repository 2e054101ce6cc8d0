"""What ends a run before ``run.rounds``: the table ``[run.stop]``, divergence, and signals.

Also how a run ended: its status, and the exit code.
"""

from __future__ import annotations

import dataclasses
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from math import isfinite
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import numpy as np

from mpisim.core.errors import Diverged, InputError
from mpisim.core.schema import build, require
from mpisim.core.terminal import one_line
from mpisim.runs.ctrl_c import LastWords

COSTS = ("bits_up", "paper_bits_up", "oracle_calls")  # per worker, as on the axes of figures
OF_REFERENCE = ("suboptimality", "distance_sq")
GRADIENT, DIVERGENCE = "grad_norm_sq", "divergence"
GROWTH = 1e30  # of the loss, which no run comes back from
STATUS: dict[int, str] = {  # SIGHUP: the terminal is closed
    signal.SIGINT: "interrupted",
    signal.SIGHUP: "terminated",
    signal.SIGTERM: "terminated",
}
CAUSE = {"interrupted": "Ctrl-C", "terminated": "SIGTERM or a closed terminal"}
SAY_SECONDS = 0.1  # between two updates of the last words
COMPLETE = ("done", "diverged")  # a sweep never runs these again
STOPPED = tuple(CAUSE)  # by a signal
EXIT_CODES = {
    "done": 0,
    "diverged": Diverged.exit_code,
    "skipped": InputError.exit_code,
    **{status: 128 + number for number, status in STATUS.items()},
}


@dataclasses.dataclass(frozen=True)
class Stop:
    """A run ends with the first logged row that meets a condition, whichever comes first.

    Costs and accuracies have the names of their columns. A cost is met where a worker's share of
    the column, its mean over the workers, is at least the number; an accuracy where the column is
    at most the number.
    ``divergence`` is met where |grad f(x^k)|^2 is more than so many times |grad f(x^0)|^2.
    """

    bits_up: float | None = None
    paper_bits_up: float | None = None
    oracle_calls: float | None = None
    grad_norm_sq: float | None = None
    suboptimality: float | None = None
    distance_sq: float | None = None
    loss: float | None = None
    divergence: float | None = None

    def __post_init__(self) -> None:
        for name, bound in self.conditions.items():
            key = f"run.stop.{name}"
            if name in COSTS:
                require(bound > 0 and isfinite(bound), key, bound, "a number > 0")
            elif name == "loss":
                require(isfinite(bound), key, bound, "a finite number")
            elif name == DIVERGENCE:
                require(bound > 1 and isfinite(bound), key, bound, "a number > 1")
            else:
                require(bound >= 0 and isfinite(bound), key, bound, "a number >= 0")

    @cached_property
    def conditions(self) -> dict[str, float]:
        """The numbers that are given, by column."""
        given = dataclasses.asdict(self).items()
        return {name: bound for name, bound in given if bound is not None}

    @property
    def accuracies(self) -> list[str]:
        """The conditions that say how close a run got."""
        return [name for name in self.conditions if name not in (*COSTS, DIVERGENCE)]

    def met(self, row: Mapping[str, float], n: int, start: float) -> str:
        """The first condition that a row meets, by its key; empty if it meets none.

        row : values by column; n : workers; start : |grad f(x^0)|^2
        """
        return next((key for key in self.conditions if self._meets(key, row, n, start)), "")

    def first_row(self, columns: Mapping[str, np.ndarray] | np.ndarray, n: int) -> int | None:
        """The first row that meets a condition; None if there is none.

        columns : arrays of shape (rows,), or an array with fields, by name; n : workers
        """
        if not self.conditions or not len(columns[GRADIENT]):
            return None
        start = columns[GRADIENT][0]
        met = np.any([self._meets(key, columns, n, start) for key in self.conditions], axis=0)
        return int(np.argmax(met)) if met.any() else None

    def _meets(self, key: str, row: Any, n: int, start: float) -> Any:
        """Whether a row meets a condition; for arrays by column, whether each row does."""
        bound = self.conditions[key]
        values = np.asarray(row[GRADIENT if key == DIVERGENCE else key], np.float64)
        if key in COSTS:
            return values / n >= bound
        return values > bound * start if key == DIVERGENCE else values <= bound


def diverges(row: Mapping[str, float], start: float) -> bool:
    """Whether a run has diverged at a row.

    It has if the loss, |grad f|^2, or a distance to the minimiser is not finite, or if |f(x^k)| is
    more than `GROWTH` times |f(x^0)|, or than `GROWTH` where |f(x^0)| is below 1.

    row : values by column; start : f(x^0)
    """
    names = ("loss", GRADIENT, *OF_REFERENCE)
    finite = all(isfinite(row[name]) for name in names if name in row)
    return not (finite and abs(row["loss"]) <= GROWTH * max(1.0, abs(start)))


def stop_of(config: Mapping[str, Any]) -> Stop:
    """The conditions in an experiment's tables; `InputError` where they cannot be any."""
    return build(Stop, config.get("run", {}).get("stop", {}), "run.stop")


def no_signal() -> int:
    """0: no other process has received a signal."""
    return 0


class StopSignals:
    """Notes the first signal; a second one has its usual effect.

    Python delivers signals to the main thread; another thread notes none.

    go_on : how to go on after the signal, for the line that says so
    watch : is called at every row, and about once a second between rows that are far apart; returns
        a signal that another process has received, or 0
    """

    def __init__(self, go_on: str = "--resume continues") -> None:
        self._received, self.go_on = 0, go_on
        self.watch: Callable[[], int] = no_signal
        self._previous: dict[int, Any] = {}
        self._last_words: LastWords | None = None
        self._due = 0.0

    def follow(self, watch: Callable[[], int], go_on: str) -> None:
        """From now on call ``watch``, and say ``go_on``."""
        self.watch, self.go_on = watch, go_on

    @property
    def received(self) -> int:
        """The first signal; 0: none."""
        self._received = self._received or self.watch()
        return self._received

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._previous = {
                # None is a handler of C, which Python cannot install again
                number: signal.signal(number, self._note) or signal.SIG_DFL
                for number in STATUS
                if number != signal.SIGHUP or signal.getsignal(number) == signal.SIG_DFL  # nohup
            }
            self._last_words = LastWords.start()
            if self._last_words is not None:
                self._last_words.say(f"mpisim: stopped by Ctrl-C before a row; {self.go_on}")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._last_words is not None:
            if not (self._received or kind is KeyboardInterrupt):
                self._last_words.say("")
            self._last_words.close()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Before the first round: meanwhile a signal has its usual effect."""
        noting = {number: signal.signal(number, usual) for number, usual in self._previous.items()}
        try:
            yield
        finally:
            for number, handler in noting.items():
                signal.signal(number, handler)

    def at(self, k: int, log: Path | None) -> None:
        """Round k has a row: what the line says if mpirun does not wait for the next one."""
        if self._last_words is not None and monotonic() > self._due:
            self._last_words.say(self._line("interrupted", f"{k} or later", log))
            self._due = monotonic() + SAY_SECONDS

    def stopped(self, status: str, k: int, log: Path | None) -> str:
        """The line about a run that ended with ``status``, one of `STATUS`, at round k."""
        if self._last_words is not None:
            self._last_words.say(self._line("interrupted", str(k), log))
        return self._line(status, str(k), log)

    def ended(self, status: str, left: str) -> str:
        """The line about runs side by side that ended with ``status``; ``left``: how to go on."""
        line = f"mpisim: stopped by {CAUSE[status]}; {left}"
        if self._last_words is not None:
            self._last_words.say(line)
        return line

    def _line(self, status: str, k: str, log: Path | None) -> str:
        place = "" if log is None else f"; log {log}"
        return one_line(f"mpisim: stopped by {CAUSE[status]} at round {k}{place}; {self.go_on}")

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._received = self._received or number  # mpirun's SIGTERM follows Ctrl-C
        signal.signal(number, self._previous[number])
