"""Makes a plugin, and its test, from a template or a method; and a job for Slurm."""

from __future__ import annotations

import ast
import inspect
import json
import keyword
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from mpisim.core.errors import InputError
from mpisim.core.files import write_file
from mpisim.core.schema import choose, filled_template
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.testing.plugins import KINDS as REGISTRIES

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
KINDS = REGISTRIES | {"estimator": METHODS, "method": METHODS}


def create(kind: str, name: str, folder: Path, like: str = "") -> list[Path]:
    """Write a plugin that passes `mpisim check` as it is, and its test; returns the two files.

    kind : one of `KINDS`
    name : in experiments; the file is named after it, ``-`` as ``_``
    like : a method that one of the kind "method" is a copy of

    `InputError` if mpisim or another plugin has the name, if it cannot be that of a module, or if a
    file exists.
    """
    stem = name.replace("-", "_")
    if not NAME.fullmatch(name) or keyword.iskeyword(stem):
        allowed = "letters, digits, '-' and '_', a letter first, and no keyword of Python"
        raise InputError(f"{name!r} is not allowed as a name; it must have {allowed}")
    if name in KINDS[kind]:
        raise InputError(f"the {kind} {name!r} exists already; choose another name")
    targets = {folder / f"{stem}.py": kind, folder / f"test_{stem}.py": f"test_{kind}"}
    for path in targets:
        _require_new(path)
    if stem in sys.stdlib_module_names or find_spec(stem) is not None:
        raise InputError(f"{name!r}: Python has another module {stem!r}; choose another name")
    words = {"NAME": name, "FILE": stem, "LABEL": _class(stem), "CLASS": _class(stem)}
    for path, template in targets.items():
        if template == "method":
            text = copied(like, name, _class(stem))
        else:
            text = filled_template(__file__, f"{template}.py.txt", words)
        _write(path, text)
    return list(targets)


def create_job(path: Path) -> Path:
    """Write a batch script that runs this installation of mpisim from any folder."""
    words = {"NAME": path.name, "PREFIX": sys.prefix, "PYTHON": sys.executable}
    quoted = {name: shlex.quote(value) for name, value in words.items()}
    _write(path, filled_template(__file__, "job.sbatch", quoted))
    return path


def copied(method: str, name: str, title: str) -> str:
    """The text of a plugin: the estimator of a method as class ``title``, with what it imports.

    name : of the method that the plugin makes known; `InputError` if there is no ``method``
    """
    pair = choose(METHODS, method, "--like")
    kind = ESTIMATORS[pair.estimator]
    source = inspect.getsource(kind)
    [tree] = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    lines = source.splitlines()[tree.lineno - 1 :]  # without decorators
    lines[0] = lines[0].replace(f"class {kind.__name__}", f"class {title}", 1)
    keys = {"label": title, "optimizer": pair.optimizer} | pair.defaults
    arguments = ", ".join([json.dumps(name), *(f"{k}={json.dumps(v)}" for k, v in keys.items())])
    arguments += ", dense=True" * pair.dense
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"estimator"}
    head = [f'"""{name}: {pair.label}, to be changed."""', "", *_imports(kind.__module__, used)]
    return "\n".join([*head, "", "", f"@mpisim.method({arguments})", *lines, ""])


def _imports(module: str, used: set[str]) -> list[str]:
    """Lines that import what is ``used`` from where a module has it, or from the module; sorted."""
    standard: list[str] = []
    other = ["import mpisim"]
    origins = {module: used & vars(sys.modules[module]).keys()}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.asname or alias.name for alias in node.names} & used
            origins[module] -= names
            if isinstance(node, ast.ImportFrom):
                origins[str(node.module)] = names
            elif names:
                line = ast.unparse(node)
                (standard if node.names[0].name in sys.stdlib_module_names else other).append(line)
    for origin, names in sorted(origins.items()):
        ordered = sorted(names, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
        line = f"from {origin} import {', '.join(ordered)}"
        if len(line) > 100:
            line = f"from {origin} import (\n    " + ",\n    ".join(ordered) + ",\n)"
        if names:
            (standard if origin in sys.stdlib_module_names else other).append(line)
    future = "from __future__ import annotations"
    return [future, "", *standard, *[""] * bool(standard), *other]


def _class(stem: str) -> str:
    """``FirstK`` for ``first_k``."""
    return "".join(part[:1].upper() + part[1:] for part in stem.split("_"))


def _require_new(path: Path) -> None:
    if path.exists():
        raise InputError(f"{path}: exists already; choose another name or folder")


def _write(path: Path, text: str) -> None:
    _require_new(path)
    write_file(path, text.encode())
