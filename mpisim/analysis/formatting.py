"""Numbers and tables as plain text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mpisim.core.errors import library
from mpisim.core.schema import package_table
from mpisim.core.terminal import one_line

TABLES: dict[str, dict[str, Any]] = package_table(__file__, "tables.toml")
T = TypeVar("T")
Table = tuple[Sequence[str], Sequence[Sequence[Any]]]  # its head, and its rows
TEMPLATES = Path(__file__).with_name("template")
FORMATS = ("text", "markdown", "latex", "csv")
UNKNOWN = "-"
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet takes text that begins so for a formula
# in texts, all of them are meant as they are: also those that begin emphasis or an entity, or end
# the text of a link
SPECIAL = re.compile(r"([|*<$`~\\]|(?<![^\W_])_|&(?=#?\w+;)|\](?=[(\[:]))")
# Of texts for LaTeX: signs that it would take for its own, and letters for any engine.
GREEK: dict[str, str] = TABLES["letters"]
INSIDE = str.maketrans({letter: f"{command} " for letter, command in GREEK.items()})
TEX = str.maketrans(
    {
        **{letter: f"${command}$" for letter, command in GREEK.items()},
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
        **{"<": "$<$", ">": "$>$", "|": "$|$"},
    }
)
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
QUANTITY = re.compile(rf"{_NUMBER}(?: ± {_NUMBER})?")
POWER = re.compile(r"(-?\d+(?:\.\d+)?)e([+-]?\d+)")
OPTION = re.compile(r"^( *)([\[*])")  # at the begin of a row: that of the command before it
# A text between dollar signs is a formula if it has none but these commands.
COMMANDS = (
    "|".join(c[1:] for c in GREEK.values() if c[0] == "\\") + "|nabla|star|cdot|ell|epsilon|mu"
)
HARMLESS = re.compile(
    rf"\$(?:\\(?:[|,;]|(?:{COMMANDS})(?![a-zA-Z]))|\{{[\w+*., -]*\}}|\^(?!\^)|[^\\%#&{{}}~^$])+\$"
)
# A formula, ``γ = 0.5`` and ``K = 10``, which are one.
FORMULA_PARTS = re.compile(rf"(\$[^$]+\$|\b[\w]₁?₂? = {_NUMBER}(?![\w.]))")


def number(value: object, digits: int = 6) -> str:
    """A float with so many digits; "-" for None."""
    if value is None:
        return UNKNOWN
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def span(values: Any) -> str:
    """The least and the largest value of an array, or its only one."""
    least, most = number(values.min().item()), number(values.max().item())
    return least if least == most else f"{least} to {most}"


def pairs(lines: Iterable[tuple[str, str]]) -> str:
    """A name and a value per line, without those whose value is empty."""
    return "\n".join(f"{name:<14}{one_line(value)}" for name, value in lines if value)


def columns(lines: Sequence[Sequence[str]], right: Iterable[int] = (), indent: str = "  ") -> str:
    """Cells in columns of plain text; those numbered in ``right`` are flush right."""
    text = _tabulated(lines, right, tablefmt="plain")
    return textwrap.indent("\n".join(line.rstrip() for line in text.splitlines()), indent)


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    form: str = "text",
    right: Iterable[int] | None = None,
    siunitx: bool = False,
) -> str:
    """A table in one of `FORMATS`.

    CSV has all digits of numbers, an empty cell for None, and an apostrophe before text that a
    spreadsheet would take for a formula. The others show `number`, Markdown `escaped`, and text and
    LaTeX have columns flush right: ``right``, or those with numbers. ``siunitx`` is for LaTeX.
    """
    rows = [list(row) for row in rows]
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([_harmless(cell) for cell in row] for row in (head, *rows))
        return out.getvalue().rstrip("\n")
    if right is None:
        right = {i for row in rows for i, cell in enumerate(row) if isinstance(cell, int | float)}
    texts = [[one_line(number(cell)) for cell in row] for row in (head, *rows)]
    if form == "latex":
        return _latex(texts, {*right}, siunitx)
    if form == "markdown":
        head, *rows = ([escaped(text) for text in row] for row in texts)
        return markdown(head, rows)
    return columns(texts, right, indent="")


def _latex(texts: Sequence[Sequence[str]], right: set[int], siunitx: bool) -> str:
    r"""A table in LaTeX with the rules of booktabs, for any engine; the first row is its head.

    Formulas between dollar signs stay if they are `HARMLESS`, and numbers and ``K = 10`` become
    formulas, numbers with ``siunitx`` as ``\num{...}``.
    """
    sides = "".join("r" if i in right else "l" for i in range(len(texts[0])))
    needs = "booktabs,siunitx" if siunitx else "booktabs"
    lines = [[tex(text, siunitx) for text in row] for row in texts]
    joined = (OPTION.sub(r"\1{\2}", " & ".join(line)) for line in lines)
    first, *body = (f"{row} \\\\" for row in joined)
    return "\n".join(
        [
            f"\\begin{{tabular}}{{{sides}}}  % needs \\usepackage{{{needs}}}",
            *("\\toprule", first, "\\midrule", *body, "\\bottomrule", "\\end{tabular}"),
        ]
    )


def tex(text: str, siunitx: bool = False) -> str:
    """A text as LaTeX in ASCII: see `_latex`."""
    if QUANTITY.fullmatch(text):
        if siunitx:
            return rf"\num{{{text.replace('±', '+-').replace(' ', '')}}}"
        return f"${tex_number(text)}$"
    parts = FORMULA_PARTS.split(text)  # every second one is a formula, or is said to be one
    return "".join(
        f"${tex_number(part.strip('$'))}$"
        if i % 2 and (part[0] != "$" or HARMLESS.fullmatch(part))
        else part.translate(TEX)
        for i, part in enumerate(parts)
    )


def tex_number(text: str) -> str:
    """The inside of a formula: 1.5e-07 as 1.5 times a power of ten, Greek letters as commands."""
    powers = POWER.sub(lambda m: rf"{m[1]} \cdot 10^{{{int(m[2])}}}", text)
    short = re.sub(r"(?<![\d.])1 \\cdot (?=10\^)", "", powers).translate(INSIDE)
    return " ".join(short.split())


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, without padding: a longer cell changes its own line alone."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def html(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in HTML, for a notebook."""
    texts = [[number(cell) for cell in row] for row in rows]
    return _tabulated(texts, (), headers=head, tablefmt="html") if texts else ""


def rendered(name: str, **content: Any) -> str:
    """A template of `TEMPLATES`, filled in; of HTML, what is special in texts is escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FunctionLoader(lambda name: (TEMPLATES / name).read_text(encoding="utf-8")),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=name.endswith(".md"),
    )
    environment.filters |= {"number": number, "escaped": escaped}
    return environment.get_template(name).render(**content)


class Listing(list[T]):
    """A list that is shown as a table.

    A class says what its table has: `_shown` is to be looked at, `_exact` has all digits, and
    `_lines` are the title above the table and the notes below it. The first ``left`` columns are
    flush left.
    """

    left = 1

    def _shown(self, form: str) -> Table:
        raise NotImplementedError

    def _exact(self) -> Table:
        raise NotImplementedError

    def _lines(self) -> tuple[Sequence[str], Sequence[str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.to_text("text")

    def _repr_html_(self) -> str:
        return html(*self._shown("html"))

    def to_text(self, form: str, siunitx: bool = False) -> str:
        """The table in one of `FORMATS`, with its notes. ``siunitx`` is for LaTeX."""
        if form == "csv":
            return table(*self._exact(), form)
        head, rows = self._shown(form)
        title, notes = self._lines()
        body = table(head, rows, form, range(self.left, len(head)), siunitx)
        if form == "markdown":
            return "\n\n".join([body, *map(escaped, notes)])
        if form == "latex":
            return "\n".join([*(f"% {one_line(line)}" for line in (*title, *notes)), body])
        return "\n".join([*title, body, *notes])

    def to_pandas(self) -> Any:
        """A DataFrame of the table with all digits. Needs pandas."""
        head, rows = self._exact()
        return library("pandas", "pandas", "to_pandas()").DataFrame(rows, columns=head)


class Text(str):
    """A text that is shown as it is, also in a notebook."""

    def __repr__(self) -> str:
        return str(self)


def escaped(text: str) -> str:
    """A text that Markdown shows as it is, also in a cell of a table."""
    return SPECIAL.sub(r"\\\1", one_line(text))


def _harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def _tabulated(lines: Sequence[Sequence[str]], right: Iterable[int], **how: Any) -> str:
    from tabulate import tabulate

    sides = ["left"] * len(lines[0])
    for i in right:
        sides[i] = "right"
    return tabulate(lines, disable_numparse=True, colalign=sides, **how)
