"""A Sphinx extension: what pages say of commands, names and columns comes from the code.

A line ``<!-- generated: NAME -->`` of a page is replaced by the Markdown that `GENERATORS[NAME]`
returns. Docstrings of the API, which are plain text, are made into reStructuredText.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import os
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis import results
from mpisim.analysis.claims import summary
from mpisim.analysis.markdown import table
from mpisim.cli import entry
from mpisim.compressors import COMPRESSORS
from mpisim.core.schema import describe
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.names import METHODS
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems import PROBLEMS
from mpisim.runs.log.schema import CUMULATIVE, ITERATE, REFERENCE, WORKERS, Column
from mpisim.runs.metrics import METRICS
from mpisim.runs.metrics.base import Tests

MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.M)
FIELD = re.compile(r"^(\w[\w, ]*) : (.*)$")  # "n : workers over all ranks"
RUN = Path(__file__).parents[2] / "run"
NO_DEFAULT = dataclasses.MISSING


def commands() -> str:
    """A heading and the text of --help for each sub-command, and for each of theirs."""
    os.environ["COLUMNS"] = "92"
    return "\n\n".join(text for name in entry.COMMANDS for text in _help(name, _parser(name)))


def _parser(name: str) -> argparse.ArgumentParser:
    return _children(entry._parser([name]))[name]


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
    groups: list[tuple[str, Sequence[Column]]] = [
        ("always", ITERATE),
        ("`run.reference = true`", REFERENCE),
        ("always", CUMULATIVE),
        *((f'`run.columns = ["{name}"]`', kind.columns) for name, kind in METRICS.items()),
        ("problems with a test set", Tests.columns),
    ]
    rows = [
        [f"`{name}`", kind.__name__, unit, _escaped(text), when]
        for when, group in groups
        for name, kind, unit, text in group
    ]
    return table(["column", "type", "unit", "meaning", "in the log"], rows)


def worker_columns() -> str:
    """The columns of ``/workers``."""
    rows = [[f"`{n}`", kind.__name__, unit, _escaped(text)] for n, kind, unit, text in WORKERS]
    return table(["column", "type", "unit", "meaning"], rows)


def verdicts() -> str:
    """The verdicts on the claims of all studies that are on record."""
    found = [result for folder in sorted(RUN.glob("*/results")) for result in results.read(folder)]
    return summary(results.by_scale(found))


def compressors() -> str:
    return "\n\n".join(_entry(name, [kind]) for name, kind in sorted(COMPRESSORS.items()))


def problems() -> str:
    return "\n\n".join(_entry(name, [kind]) for name, kind in sorted(PROBLEMS.items()))


def methods() -> str:
    """Every method, with the keys of its two halves; then the optimizers, once each."""
    parts = []
    for name, pair in METHODS.items():
        kinds = [ESTIMATORS[pair.estimator], OPTIMIZERS[pair.optimizer]]
        head = f"{pair.label}: estimator `{pair.estimator}`, optimizer `{pair.optimizer}`."
        parts.append(_entry(name, kinds, head, pair.defaults))
    return "\n\n".join(parts)


def optimizers() -> str:
    return "\n\n".join(_entry(name, [kind]) for name, kind in OPTIMIZERS.items())


def _entry(
    name: str, kinds: Sequence[type], head: str = "", defaults: Mapping[str, Any] | None = None
) -> str:
    """A heading, the docstring of the first class, and a table of the keys of all."""
    rows = [row for kind in kinds for row in _keys(kind, defaults or {})]
    keys = table(["key", "allowed", "default"], rows) if rows else ""
    parts = [f"### `{name}`", head, markdown(inspect.getdoc(kinds[0]) or ""), keys]
    return "\n\n".join(part for part in parts if part)


def _keys(kind: type, defaults: Mapping[str, Any]) -> Iterator[list[str]]:
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.init:
            value = defaults.get(field.name, _default(field))
            shown = "" if value is NO_DEFAULT else f"`{_toml(value)}`"
            allowed = describe(hints[field.name]).replace(" or absent", "")
            yield [f"`{field.name.rstrip('_')}`", _escaped(allowed), shown]


def _default(field: dataclasses.Field) -> Any:
    if field.default_factory is not NO_DEFAULT:
        return field.default_factory()
    return field.default


def _toml(value: Any) -> str:
    if value is None:
        return "not set"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _escaped(text: str) -> str:
    return re.sub(r"([|*<])", r"\\\1", text)


def markdown(docstring: str) -> str:
    """A docstring as Markdown: listed names as bullets, signs of mathematics as they are."""
    return _escaped("\n".join(_bullets(docstring.split("\n"))))


def rst(docstring: Sequence[str]) -> list[str]:
    """A docstring's lines as reStructuredText."""
    escaped = (re.sub(r"([|*])|_(?![\w`])", r"\\\g<0>", line) for line in docstring)
    if any(set(line.strip()) == {"-"} for line in docstring if line.strip()):
        return list(escaped)  # numpydoc sections, which napoleon reads
    return list(_bullets(escaped))


def _bullets(lines: Iterable[str]) -> Iterator[str]:
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


GENERATORS = {
    f.__name__: f
    for f in (
        commands,
        columns,
        worker_columns,
        verdicts,
        compressors,
        problems,
        methods,
        optimizers,
    )
}


def _fill(app: Any, page: str, source: list[str]) -> None:
    source[0] = MARK.sub(lambda found: GENERATORS[found[1]](), source[0])


def _docstring(app: Any, what: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
    lines[:] = rst(lines)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
