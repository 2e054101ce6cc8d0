"""Find the state of a part of a run: what it changes between two rounds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mpisim.core.arrays import is_tensor
from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.registry import unfrozen


class Stateful:
    """A part of a run. Its state is every array, and every attribute set after `begin`.

    State consists of arrays and numbers. Arrays (m, ...) with two axes or more, and lazy rows, have
    a row for each worker of this rank; other arrays and numbers are the same for all workers.
    """

    _at_the_start: dict[str, Any]

    def _bind(self, **context: Any) -> Self:
        """A copy with the attributes ``context``, checked, and without state of a run."""
        copy = unfrozen(self)
        vars(copy).update(context)
        copy.check()
        copy.begin()
        return copy

    def check(self) -> None:
        """Resolve "theory" parameters; raise `InputError` for a value that is not allowed.

        `bind` calls it on its copy, so it may set attributes.
        """

    def begin(self) -> None:
        """Note what is set: an attribute is not state while it stays the same object."""
        self._at_the_start = dict(vars(self))

    def state(self) -> dict[str, Any]:
        """The state by name, sorted; `InputError` for a value that a checkpoint cannot hold."""
        found, start = {}, self._at_the_start
        for name, value in sorted(vars(self).items()):
            array = isinstance(value, np.ndarray) or is_tensor(value)
            if value is start or (not array and name in start and start[name] is value):
                continue
            number = isinstance(value, bool | int | float | np.number | LazyRows)
            if not number and not (array and value.dtype != object):
                kind = f"{type(self).__module__}.{type(self).__name__}"
                raise InputError(
                    f"{kind}: its attribute {name!r} changes from round to round, but is a"
                    f" {type(value).__name__}; allowed for a checkpoint: arrays and numbers"
                )
            found[name] = value
        return found

    def restore(self, state: dict[str, Any]) -> None:
        """Set what `state` returned."""
        for name, value in state.items():
            setattr(self, name, value)
