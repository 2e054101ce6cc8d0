"""Docstrings as Markdown and reStructuredText, and the fields that they describe."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence

from formulas import display, inline

FIELD = re.compile(r"^(\w[\w, ]*) : (.*)$")  # "n : workers over all ranks"


def described(kind: type) -> dict[str, str]:
    """The fields that the docstrings of a class and its bases describe."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        names: list[str] = []
        for line in inspect.cleandoc(vars(base).get("__doc__") or "").split("\n"):
            start = FIELD.match(line)
            if start:
                names = start[1].split(", ")
                found |= dict.fromkeys(names, start[2])
            elif names and line.startswith(" "):
                found |= {name: f"{found[name]} {line.strip()}" for name in names}
            else:
                names = []
    return found


def without(keys: set[str], docstring: str) -> str:
    """A docstring without the fields that are keys."""
    kept, inside = [], False
    for line in docstring.split("\n"):
        start = FIELD.match(line)
        inside = set(start[1].split(", ")) <= keys if start else inside and line.startswith(" ")
        if not inside:
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def summary(kind: type) -> str:
    """The first paragraph of a docstring."""
    first = (inspect.getdoc(kind) or "").split("\n\n")[0]
    return typeset(" ".join(first.split()))


def escaped(text: str) -> str:
    return re.sub(r"([|*<])", r"\\\1", text)


def typeset(text: str) -> str:
    """A sentence as Markdown, with its formulas in LaTeX and its tables of TOML as code."""
    return inline(text, lambda formula: f"${formula}$", _words)


def _words(text: str) -> str:
    return re.sub(r"(?<!`)\{ [^{}`]* \}", r"`\g<0>`", escaped(text))


def markdown(docstring: str) -> str:
    """A docstring as Markdown: formulas in LaTeX, listed names as bullets, signs as they are."""
    return "\n\n".join(_paragraph(one) for one in docstring.split("\n\n"))


def _paragraph(text: str) -> str:
    lines = text.split("\n")
    if all(line.startswith("    ") for line in lines):
        return f"```math\n{display([line[4:] for line in lines])}\n```"
    if all(re.match(r"\S+ += |\s{4}", line) for line in lines) and len(lines) > 1:
        return f"```math\n{display(lines)}\n```"
    return typeset("\n".join(bullets(lines)))


def bullets(lines: Iterable[str]) -> Iterator[str]:
    """``n : text`` lines as items of a list; their indented continuations stay with them."""
    inside = False
    for line in lines:
        field = FIELD.match(line)
        if field and not inside:
            yield ""
        if field:
            names = ", ".join(f"``{name}``" for name in field[1].split(", "))
            yield f"- {names}: {field[2]}"
        else:
            yield f"  {line.strip()}" if inside and line.startswith(" ") else line
        inside = bool(field) or (inside and line.startswith(" "))


def rst(docstring: Sequence[str]) -> list[str]:
    """A docstring's lines as reStructuredText, with their formulas in LaTeX."""
    lines = list(docstring)
    if not any(set(line.strip()) == {"-"} for line in lines if line.strip()):
        lines = list(bullets(lines))  # else napoleon reads the sections of numpydoc
    return [_rst_line(line) for line in lines]


def _rst_line(line: str) -> str:
    if line.startswith("    ") or FIELD.match(line):
        return line
    return inline(line, lambda formula: f":math:`{formula}`", _rst_words)


def _rst_words(text: str) -> str:
    return re.sub(r"([|*])|_(?![\w`])", r"\\\g<0>", text)
