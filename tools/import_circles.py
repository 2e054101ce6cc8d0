"""Prints the circles of imports between modules, within rooms too; exits with 1 if there are any.

Imports in functions and for type checkers count. import-linter's layers do not look into a room.
"""

import ast
import graphlib
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def modules(root: Path) -> dict[str, Path]:
    """The files of mpisim by their names as modules."""
    paths = {path.relative_to(root).with_suffix(""): path for path in root.rglob("mpisim/**/*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in paths.items()}


def imports(tree: ast.AST, names: dict[str, Path]) -> Iterator[str]:
    """The modules among ``names`` that a module's imports name; a module's parent if it is none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module in names:
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in names else node.module for name in inner)


def circle(root: Path) -> list[str]:
    """The modules of one circle, the first also at the end; empty if there is none."""
    names = modules(root)
    graph = {name: {*imports(ast.parse(path.read_text()), names)} for name, path in names.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


if __name__ == "__main__":
    cycle = circle(ROOT)
    sys.exit(f"circle of imports: {' <- '.join(cycle)}" if cycle else 0)
