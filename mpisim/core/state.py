"""State that is found: what a part of a run changes between two rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import LazyRows


class Stateful:
    """A part of a run whose state is every array, and every attribute that was set after `begin`.

    State consists of arrays and numbers. Arrays (m, ...) with two axes or more, and lazy rows, have
    a row for each worker of this rank; other arrays and numbers are the same for all workers.
    """

    _at_the_start: dict[str, Any]

    def begin(self) -> None:
        """Note what is set: none of it is state as long as it stays the same object."""
        self._at_the_start = {}
        self._at_the_start = dict(vars(self))

    def state(self) -> dict[str, Any]:
        """The state by name, sorted; `InputError` for a value that a checkpoint cannot hold."""
        start, unknown = self._at_the_start, object()
        found = {
            name: value
            for name, value in sorted(vars(self).items())
            if name != "_at_the_start"
            and (start.get(name, unknown) is not value or isinstance(value, np.ndarray))
        }
        for name, value in found.items():
            good = isinstance(value, bool | int | float | np.number | LazyRows) or (
                isinstance(value, np.ndarray) and value.dtype != object
            )
            if not good:
                kind = f"{type(self).__module__}.{type(self).__name__}"
                raise InputError(
                    f"{kind}: its attribute {name!r} changes from round to round, but is a"
                    f" {type(value).__name__}; allowed for a checkpoint: arrays and numbers"
                )
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Set what `state` returned."""
        for name, value in state.items():
            setattr(self, name, value)
