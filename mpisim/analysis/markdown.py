"""Tables and text in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SPECIAL = re.compile(r"([|*<$`\\])")  # in the texts of claims, all of them are meant as they are


def escaped(text: str) -> str:
    """A text that Markdown shows as it is, also in a cell of a table."""
    return SPECIAL.sub(r"\\\1", text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))
