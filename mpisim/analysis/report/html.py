"""Pieces of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from mpisim.analysis.text import number


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], sortable: bool = False) -> str:
    """A table of texts and numbers; the reader can sort it by a column if it is ``sortable``."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ["<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows]
    kind = ' class="sortable"' if sortable else ""
    body = "\n".join(lines)
    return (
        f'<div class="scroll"><table{kind}><thead><tr>{names}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values, without empty values."""
    lines = [f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows if b]
    return "<table class='pairs'><tbody>" + "\n".join(lines) + "</tbody></table>"


def heading(text: str) -> str:
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


def _cell(value: Any) -> str:
    if isinstance(value, int | float):
        return f'<td class="number" data-value="{value!r}">{number(value)}</td>'
    return f"<td>{escape(number(value))}</td>"
