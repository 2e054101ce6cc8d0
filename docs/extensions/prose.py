"""A Sphinx extension: the formulas in the prose of pages, plain text in a checkout, are typeset."""

from __future__ import annotations

import re
from typing import Any

from formulas import inline

# What has no formulas: code, what is in LaTeX, headings, HTML, links of one word, targets of links,
# quotations, the marks of lists, of emphasis and of tables, numbers of theorems, and seconds.
KEPT = re.compile(
    r"""
    ^(?P<fence>```+|:::+).*?^(?P=fence)$ | ^\ {4}[^\n]*
    | (?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`)(?:'s)?
    | \$\$.+?\$\$ | \$[^$]+\$ | ^\#[^\n]* | <!--.*?--> | </?[a-z][^<>]*> | !\[[^]]*\]
    | \[[\w.-]+\]\([^)]*\) | \]\([^)]*\) | https?://\S+ | "[^"]*" | ^\s*(?:[-*>]|\d+\.)[ ]
    | \*\* | (?<![\w*])\*(?=\w)[^*\n]*\*(?!\w)
    | ^\|[-|:\ ]+$ | (?<=\s)\|(?=\s|$) | ^\|(?=\s) | \b[a-z]+_[a-z]+_\w+ | \['[^]]*\]
    | \b(?:Tables?|Theorems?|Figures|Lemma|Algorithm|Assumption|Corollary)\s[\dA-Z][\w.]*(?:'s)?
    | \d\ [sh]\b | \w/s\b | 1\.x | C\ library | [Cg]\+\+ | W&B | mean\ log\b
    """,
    re.X | re.M | re.S,
)


def page(text: str) -> str:
    """A page of Markdown with the formulas of its sentences in LaTeX."""
    parts, at = [], 0
    for kept in KEPT.finditer(text):
        parts += [_typeset(text[at : kept.start()]), kept[0]]
        at = kept.end()
    return "".join([*parts, _typeset(text[at:])])


def _typeset(text: str) -> str:
    r"""In the cells of tables the bars of a norm are written \|."""
    return inline(text.replace(r"\|", "|"), lambda formula: f"${formula}$", _plain)


def _plain(text: str) -> str:
    return text.replace("|", r"\|")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _read, priority=400)  # before the generated texts, which have LaTeX
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read(app: Any, name: str, source: list[str]) -> None:
    if not name.endswith("notebook"):
        source[0] = page(source[0])
