"""What a study consists of: its figures, each with its numbers, drawing and claims."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.study.base import Source
from mpisim.core.errors import InputError
from mpisim.core.schema import require

NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of a study.

    Attributes
    ----------
    name : within the study: ``fig1``; ``STUDY-fig1`` names its picture and its make target
    title : one line for lists of figures
    source : where its numbers come from
    draw, claims : from what ``source.read`` finds to a matplotlib figure, and to what is claimed
    """

    name: str
    title: str
    source: Source
    draw: Callable[[Any], Any]
    claims: Callable[[Any], Iterable[Claim]]

    def __post_init__(self) -> None:
        named = isinstance(self.name, str) and NAME.fullmatch(self.name) is not None
        require(named, "a figure's name", self.name, "lower-case letters, digits, '.' and '-'")
        sourced = isinstance(self.source, Source)
        for field, right, allowed in (
            ("title", isinstance(self.title, str), "a string"),
            ("source", sourced, "Grid(...), Grids(...) or Measurement(...)"),
            ("draw", callable(self.draw), "a function of what is drawn"),
            ("claims", callable(self.claims), "a function of what is drawn"),
        ):
            require(right, f"figure {self.name}: {field}", getattr(self, field), allowed)


@dataclasses.dataclass(frozen=True)
class Study:
    """A folder, the first line of its figures.py, and its figures by name."""

    folder: Path
    title: str
    figures: dict[str, Figure]

    def figure(self, name: str) -> Figure:
        """The figure called ``name``; `InputError` lists the figures."""
        if name not in self.figures:
            known = ", ".join(self.figures)
            raise InputError(f"{self.folder}: no figure {name!r}; known: {known}")
        return self.figures[name]

    def full_name(self, figure: Figure) -> str:
        """``STUDY-FIGURE``."""
        return f"{self.folder.resolve().name}-{figure.name}"
