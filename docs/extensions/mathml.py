"""A Sphinx extension: formulas as MathML, which browsers typeset without scripts or fonts."""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import Element, SkipNode, Text, math
from latex2mathml.converter import convert

LETTER = re.compile(r"\\(mathcal|mathbb) ?(\w)")  # in braces it becomes a letter of Unicode
UNKNOWN = ("<mi>&</mi>", 'mathvariant="script"', 'mathvariant="double-struck"')


def _mathml(node: Element, display: str) -> str:
    """The formula; an error for what browsers do not show: & of an unknown environment, variants
    of letters by an attribute, which MathML Core has dropped."""
    formula = convert(LETTER.sub(r"\\\1{\2}", node.astext()), display=display)
    if any(text in formula for text in UNKNOWN):
        raise ValueError(f"not a formula for latex2mathml: {node.astext()}")
    return formula


def _inline(writer: Any, node: Element) -> None:
    formula = f'<span class="inline-formula">{_mathml(node, "inline")}</span>'
    writer.body.append(f'<span class="unbroken">{formula}{node.get("end", "")}</span>')
    raise SkipNode


def _keep_ends(app: Any, tree: Element, name: str) -> None:
    """Give formulas the comma or bracket after them: browsers would break a line between them."""
    for node in tree.findall(math):
        after = node.next_node(descend=False, siblings=True)
        end = re.match(r"[-.,;:)]+", after) if isinstance(after, Text) else None
        if end:
            node["end"] = end[0]
            after.parent.replace(after, Text(after[end.end() :]))


def _display(writer: Any, node: Element) -> None:
    formula = _mathml(node, "block")
    writer.body.append(f'<div class="formula" tabindex="0">{formula}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.connect("doctree-resolved", _keep_ends)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
