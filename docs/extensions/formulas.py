"""The formulas in docstrings, which are plain text for a terminal, typeset for pages.

`inline` looks for the formulas in a sentence, and `display` has lines of them. What a formula may
look like is in `latex`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from latex import FUNCTIONS, Token, group_end, latex, tokens_of

LEADING = {"-", "+", "+-", "<=", ">="}  # signs that a formula may start with
END = Token("end", "")


def inline(text: str, wrap: Callable[[str], str], plain: Callable[[str], str] = str) -> str:
    """A sentence with its formulas as LaTeX in ``wrap``, and its other text in ``plain``."""
    return "".join(
        wrap(latex(tokens)) if math else plain("".join(one.text for one in tokens))
        for math, tokens in _spans(tokens_of(text))
    )


def display(lines: Sequence[str]) -> str:
    """Lines of formulas, aligned at their first sign of equality; words between them are text."""
    rows = []
    for line in lines:
        left, equals, right = line.partition(" = ")
        goes_on = line.startswith("  ") or not equals
        rows.append(r"&\quad " + _mixed(line) if goes_on else f"{_mixed(left)} &= {_mixed(right)}")
    return "\\begin{split}\n" + " \\\\\n".join(rows) + "\n\\end{split}"


def _mixed(line: str) -> str:
    parts = re.split(r"\s{2,}", line.strip())
    return r" \quad ".join(inline(part, str, _words) for part in parts)


def _words(text: str) -> str:
    return rf"\text{{{text}}}" if re.search(r"[A-Za-z]", text) else text


def _spans(tokens: list[Token]) -> Iterator[tuple[bool, list[Token]]]:
    """The tokens in order: formulas, and what is between them."""
    start, rest = 0, 0
    while start < len(tokens):
        before = tokens[start - 1] if start else END
        joined = before.kind == "word" and before.text[-1].isalnum()
        end = start if joined else _formula_end(tokens, start)
        if end > start:
            yield False, tokens[rest:start]
            yield True, tokens[start:end]
            rest = end
        start = max(end, start + 1)
    yield False, tokens[rest:]


def _formula_end(tokens: list[Token], start: int) -> int:
    """One past the formula that starts here; ``start`` if none does.

    Numbers and signs alone are none: it has a letter, bars, a power or an inequality.
    """
    at, end, strong = start, start, False
    while at < len(tokens):
        kind, text = tokens[at]
        if kind in {"open", "bar"}:
            after = _group(tokens, at)
            if after == at:
                break
            strong |= any(map(_strong, tokens[at:after]))
            at = end = after
        elif kind in {"number", "times"} or (kind == "name" and not _is_word(tokens, at, end)):
            strong |= _strong(tokens[at])
            at = end = at + 1
        elif kind == "sign" and (end > start or text in LEADING):
            strong |= _strong(tokens[at])
            at += 1
            end = at if text == "..." else end
        elif kind == "space" or _in_a_row(tokens, at):
            at += 1
        else:
            break
    return end if strong and tokens[start].kind != "space" else start


def _strong(token: Token) -> bool:
    """Whether a token makes a formula of the numbers and signs around it."""
    return token.kind in {"name", "times", "bar"} or "^" in token.text or token.text in {"<=", ">="}


def _in_a_row(tokens: list[Token], at: int) -> bool:
    """Whether a comma is one of a row such as 0, 1, ..., n."""
    near = [token.text for token in tokens[max(at - 2, 0) : at + 6]]
    return tokens[at].kind == "comma" and "..." in near


def _group(tokens: list[Token], at: int) -> int:
    """One past a group in brackets or bars; ``at`` if there are words in it, or no end."""
    end = group_end(tokens, at)
    words = any(
        kind in {"word", "kept"} or (kind == "name" and _is_word(tokens, i, i))
        for i, (kind, _) in enumerate(tokens[at:end], at)
    )
    return at if words else end


def _is_word(tokens: list[Token], at: int, inside: int) -> bool:
    """Whether a name is a word: a step, A worker, the mean of. ``inside`` of a formula or not."""
    text, before, after = tokens[at].text, _near(tokens, at, -1), _near(tokens, at, 1)
    if text in {"a", "A"} and {before.kind, after.kind} & {"sign", "times"}:
        return False
    if text == "a":
        ends = after.kind in {"close", "comma", "open"} or after.text == "."
        return not (inside and before.kind not in {"word", "kept", "end"} and ends)
    if text == "A":
        starts = before.text in {"", ".", ":", "(", "["}
        return starts and bool(re.match(r"[A-Za-z]{2}", after.text))
    if text not in FUNCTIONS:
        return False
    if after.kind == "open":
        start = at + 1 + (tokens[at + 1].kind == "space")
        return _group(tokens, start) == start
    if text == "mean":
        return after.text not in {"log", "exp"}
    return after.kind not in {"bar", "name"} or after.text in {"a", "A"}


def _near(tokens: list[Token], at: int, step: int) -> Token:
    """The neighbour that is not a space."""
    at += step
    while 0 <= at < len(tokens) and tokens[at].kind == "space":
        at += step
    return tokens[at] if 0 <= at < len(tokens) else END
