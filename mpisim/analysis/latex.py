"""Tables in LaTeX, for any engine: letters outside of ASCII become commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LETTERS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "λ": r"$\lambda$",
    "ν": r"$\nu$",
    "τ": r"$\tau$",
    "ω": r"$\omega$",
    "₁": "$_1$",
    "₂": "$_2$",
} | {letter: f"\\{letter}" for letter in "&%$#_{}"}


def escaped(text: str) -> str:
    """A text that LaTeX sets as it is."""
    return "".join(LETTERS.get(letter, letter) for letter in text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table of texts in booktabs' style, its first ``left`` columns flush left."""
    lines = [" & ".join(map(escaped, cells)) + r" \\" for cells in (head, *rows)]
    shape = "l" * left + "r" * (len(head) - left)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{shape}}}  % needs \usepackage{{booktabs}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )
