r"""Formulas in plain text, as docstrings have them, in LaTeX.

``g_i^{k+1} = g_i^k + (1/n) sum_i C_i(grad f_i(x^k))`` is read token by token. The marks that
differ from LaTeX's: ``x_i^`` has a hat, ``g~`` a tilde, ``x*`` a star, ``L_i;jk`` has two indices,
``+-`` and ``<a, b>`` are signs, and bars are a norm, or the size of a number such as v_j.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

GREEK = "alpha beta gamma delta zeta eta theta lambda mu nu xi pi rho sigma tau phi chi omega"
UPRIGHT = "mean sign rule floor ceil tr Diag Dir"
FUNCTIONS = {
    "grad": r"\nabla",
    "hess": r"\nabla^2",
    "log2": r"\log_2",
    "sqrt": r"\sqrt",
    **{name: f"\\{name}" for name in ("sum", "min", "max", "log", "exp")},
    **{name: rf"\operatorname{{{name}}}" for name in UPRIGHT.split()},
}
NAMES = {
    "lambda_min": r"\lambda_{\min}",
    "lambda_max": r"\lambda_{\max}",
    "cal-L": r"\mathcal{L}",
    "p-hat": r"\hat{p}",
    "vhat": r"\hat{v}",
    "gt": r"\tilde{g}",
    "abar": r"\bar{a}",
    "dx": r"\mathit{dx}",
    "Delta": r"\Delta",
    "l2": r"\mathrm{l2}",
    "epsilon": r"\varepsilon",
    "eps": r"\varepsilon",
    "beta1": r"\beta_1",
    "beta2": r"\beta_2",
    **{name: f"\\{name}" for name in GREEK.split()},
    **FUNCTIONS,
}
SIGNS = {
    "->": r"\to",
    "<<": r"\ll",
    "<=": r"\le",
    ">=": r"\ge",
    "<": r"\lt",
    ">": r"\gt",
    "...": r"\dots",
    "+-": r"\pm",
    "±": r"\pm",
    "⟨": r"\langle",
    "⟩": r"\rangle",
    "†": r"\dagger",
    ".": r"\cdot",
}
INDICES = {"*": r"\star", "T": r"\top", "inf": r"\infty"}

ENDS = r"(?=[\s,.;):|/]|$)"
MARKS = rf"""(?: [_^]\{{[^{{}}]*\}} | _[A-Za-z0-9]+(?:;[A-Za-z]+)? | \^-?[A-Za-z0-9]+
    | _[-+±] | \^[-+*†] | \^{ENDS} | [*~]{ENDS} | '(?![a-z]) )*"""
NAME = "|".join([*map(re.escape, NAMES), "[A-Za-z]"])
TOKEN = re.compile(
    rf"""
    (?P<kept> ``.*?`` | `[^`]*` | "[^"]*" | \{{\s[^{{}}]*\}} | \]\([^)]*\) | arXiv\s[\d.]+
        | (?<!\w)i\.i\.d\. | (?<=[\w+`])'s\b
        | (?:Appendix|Appendices|Section|Example|Figure|Variant|[Oo]ption)\s[A-Z\d][\w.]* )
    | (?P<times> (?<=\d\s)x(?=\s\d) | (?<=_\w\s)x(?=\s\w_) | (?<=\b[an]\s)x(?=\s[bd]\b) )
    | (?P<name> (?: (?:{NAME})(?![A-Za-z0-9]|\.\w|-[A-Za-z]|/[a-z]{{2}})
        | [A-Za-z](?=-th\b|-Lipschitz) ) {MARKS} )(?!\w)
    | (?P<number> \d+(?:,\d{{3}})*(?:\.\d+)?(?:e-?\d+)? (?:\^-?\w+)? (?![\w-]|[.,]\d) )
    | (?P<open> [(\[⟨] ) | (?P<close> [)\]⟩]{MARKS} ) | (?P<bar> \|{MARKS} )
    | (?P<sign> \.\.\. | -> | << | <= | >= | \+- | [-+=<>/±†] | (?<=\s)\.(?=\s[a-z]\b) )
    | (?P<comma> [,;] ) | (?P<space> \s+ ) | (?P<word> [^\W_][\w.'-]*\w | . )
    """,
    re.X,
)
RANDOM = {"C(", "C", "C_i", "u", "f", "f(", "grad"}  # what E is the expectation of
MARK = re.compile(r"[_^](\{[^{}]*\}|-?[A-Za-z0-9]+(?:;[A-Za-z]+)?|.)|['*]")
SCALAR = re.compile(r"[a-z]_i?j|D_i|L_i;\w+")  # bars around these are no norm


class Token(NamedTuple):
    kind: str
    text: str


def tokens_of(text: str) -> list[Token]:
    """The tokens of a sentence; "kept" and "word" are those that no formula has."""
    text = re.sub(r"sum over (\S+) of ", r"sum_{\1} ", text)
    text = re.sub(r"(?<=\) )sum of (?=\w\()", "sum ", text)
    text = re.sub(r"<(\S[^<>]*?), ([^\s<>]+)>", r"⟨\1, \2⟩", text)
    return [Token(str(one.lastgroup), one[0]) for one in TOKEN.finditer(text)]


def group_end(tokens: Sequence[Token], at: int) -> int:
    """One past the bracket or bar that closes the one at ``at``; ``at`` where none does."""
    bar, depth = tokens[at].kind == "bar", 0
    for i in range(at, len(tokens)):
        kind = tokens[i].kind
        depth += (kind == "open") - (kind == "close")
        closed = kind == "bar" and i > at if bar else kind == "close"
        if depth == 0 and closed:
            return i + 1
    return at


def latex(tokens: Sequence[Token]) -> str:
    """A formula in LaTeX."""
    parts = "\0".join(_parts(tokens))
    parts = re.sub(r"(\\[A-Za-z]+)\0(?=[A-Za-z])", r"\1 ", parts)
    return re.sub(r"\s+", " ", parts.replace("\0", "")).strip()


def _parts(tokens: Sequence[Token]) -> Iterator[str]:
    i = 0
    while i < len(tokens):
        kind, text = tokens[i]
        end = i + 1
        if kind == "bar" and (end := group_end(tokens, i)) > i:
            inner = tokens[i + 1 : end - 1]
            sign = "vert" if SCALAR.fullmatch("".join(one.text for one in inner)) else "Vert"
            yield rf"\l{sign} {latex(inner)}\r{sign}{_marks(tokens[end - 1].text[1:])}"
        elif text == "sqrt":
            start = i + 1 + (tokens[i + 1].kind == "space")
            end = group_end(tokens, start) if tokens[start].kind == "open" else start + 1
            inner = tokens[start + 1 : end - 1] or tokens[start:end]
            marks = _marks(tokens[end - 1].text[1:]) if end > start + 1 else ""
            yield rf"\sqrt{{{latex(inner)}}}{marks}"
        elif _is_fraction(tokens, i):
            yield rf"\frac{{{latex(tokens[i + 1 : i + 2])}}}{{{latex(tokens[i + 3 : i + 4])}}}"
            end = i + 5
        elif kind == "name":
            yield _name(text, tokens[end:])
        elif kind == "close":
            yield SIGNS.get(text[0], text[0]) + _marks(text[1:])
        elif kind == "number":
            number, power, exponent = text.partition("^")
            yield _number(number) + _marks(power + exponent)
        elif kind == "times":
            yield r"\times"
        else:
            yield SIGNS.get(text, text)
        i = end


def _number(text: str) -> str:
    """1e-6 as a power of 10, and 10,000 without the space that a comma has in formulas."""
    factor, power, exponent = text.partition("e")
    digits = rf"\text{{{factor}}}" if "," in factor else factor
    if not power:
        return digits
    return f"10^{{{exponent}}}" if factor == "1" else rf"{digits} \cdot 10^{{{exponent}}}"


def _is_fraction(tokens: Sequence[Token], at: int) -> bool:
    """Whether (a/b) starts here, which is no argument of a function."""
    argument = at > 0 and tokens[at - 1].text in FUNCTIONS
    return not argument and [one.text for one in tokens[at : at + 5 : 2]] == ["(", "/", ")"]


def _name(text: str, after: Sequence[Token]) -> str:
    """A letter or a name, with its hat or tilde, indices and powers."""
    base = re.match(NAME, text)[0]  # type: ignore[index]
    marks, letter = text[len(base) :], NAMES.get(base, base)
    following = "".join(one.text for one in after[:2]).strip()
    if text == "E" and (following[:1] == "|" or following in RANDOM):
        letter = r"\mathbb{E}"
    if marks.endswith(("^", "~")):
        letter = rf"\{'hat' if marks[-1] == '^' else 'tilde'}{{{letter}}}"
        marks = marks[:-1]
    return letter + _marks(marks)


def _marks(text: str) -> str:
    """Indices, powers and primes."""
    result = ""
    for mark in MARK.finditer(text):
        inner = (mark[1] or "").strip("{}")
        value = INDICES.get(inner) or latex(tokens_of(inner))
        braced = value if len(value) == 1 else f"{{{value}}}"
        result += {"'": "'", "*": r"^\star"}.get(mark[0], mark[0][0] + braced)
    return result
