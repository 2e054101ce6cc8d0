"""A Sphinx extension: what pages say of commands, names and columns comes from the code.

``<!-- generated: NAME -->`` in a page stands for the Markdown that `GENERATORS[NAME]` returns. Up
to a line ``<!-- end -->`` the page holds that text itself, for readers of a checkout.

Usage: python docs/extensions/generated_tables.py
writes these texts again, in all pages.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import names_and_keys
from docstrings import rst, typeset
from names_and_keys import belongs

from mpisim.analysis import results
from mpisim.analysis.claims import summary
from mpisim.analysis.formatting import markdown as table
from mpisim.cli.entry import parser_for
from mpisim.cli.parser import COMMANDS
from mpisim.runs.log.schema import CUMULATIVE, ITERATE, LABELS, REFERENCE, WORKERS, Column
from mpisim.runs.metrics import METRICS, Events, Tests

HELD = r"(?P<held>\n\n(?:(?!<!-- generated).)*?\n\n<!-- end -->$)"
MARK = re.compile(rf"^<!-- generated: (?P<name>\w+) -->${HELD}?", re.M | re.S)
DOCS = Path(__file__).parents[1]
RUN = DOCS.parent / "run"


def commands() -> str:
    """A heading and the text of --help for each sub-command, and for each of theirs."""
    os.environ["COLUMNS"] = "92"
    parsers = {name: _children(parser_for([name]))[name] for name in COMMANDS}
    return "\n\n".join(text for name, parser in parsers.items() for text in _help(name, parser))


def _children(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def _help(name: str, parser: argparse.ArgumentParser, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} mpisim {name}\n\n```text\n{parser.format_help().strip()}\n```"
    for own, child in _children(parser).items():
        yield from _help(f"{name} {own}", child, level + 1)


def columns() -> str:
    """The columns of ``/rounds``, with those that ``run.columns`` and test sets add."""
    metrics = {name: kind for name, kind in METRICS.items() if belongs(kind)}
    groups: list[tuple[str, Sequence[Column]]] = [
        ("always", ITERATE),
        ("`run.reference = true`", REFERENCE),
        ("always", CUMULATIVE),
        *((f'`run.columns = ["{name}"]`', kind.columns) for name, kind in metrics.items()),
        ("problems with a test set", Tests.columns),
        ("methods on an event clock", Events.columns),
    ]
    rows = [
        [f"`{name}`", kind.__name__, unit, typeset(text), when]
        for when, group in groups
        for name, kind, unit, text in group
    ]
    return table(["column", "type", "unit", "meaning", "in the log"], rows)


def worker_columns() -> str:
    """The columns of ``/workers``."""
    columns = WORKERS + LABELS
    rows = [[f"`{n}`", kind.__name__, unit, typeset(text)] for n, kind, unit, text in columns]
    return table(["column", "type", "unit", "meaning"], rows)


def verdicts() -> str:
    """The verdicts on the claims of all studies that are on record."""
    found = [result for folder in sorted(RUN.glob("*/results")) for result in results.read(folder)]
    return summary(results.by_scale(found))


GENERATORS = {
    f.__name__: f
    for f in (
        commands,
        columns,
        worker_columns,
        verdicts,
        names_and_keys.problem_names,
        names_and_keys.data_keys,
        names_and_keys.method_names,
        names_and_keys.method_keys,
        names_and_keys.compressor_names,
        names_and_keys.run_keys,
        names_and_keys.server_keys,
        names_and_keys.attack_keys,
        names_and_keys.fleet_keys,
        names_and_keys.stop_keys,
        names_and_keys.problems,
        names_and_keys.methods,
        names_and_keys.optimizers,
        names_and_keys.compressors,
    )
}


def current(page: str) -> str:
    """A page with the texts that it holds as the code has them now."""

    def text(found: re.Match[str]) -> str:
        if not found["held"]:
            return found[0]
        name = found["name"]
        return f"<!-- generated: {name} -->\n\n{GENERATORS[name]()}\n\n<!-- end -->"

    return MARK.sub(text, page)


def main() -> None:
    for path in sorted(DOCS.rglob("*.md")):
        page = path.read_text()
        if page != current(page):
            path.write_text(current(page))
            print(path)


def _fill(app: Any, page: str, source: list[str]) -> None:
    source[0] = MARK.sub(lambda found: GENERATORS[found["name"]](), source[0])


def _docstring(app: Any, what: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
    lines[:] = rst(lines)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main()
