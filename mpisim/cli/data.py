"""The texts of ``mpisim data list | info | fetch | sample``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mpisim.core.errors import InputError
from mpisim.problems.data import arrange, libsvm
from mpisim.problems.data import fetch as fetching
from mpisim.problems.data.content import read_content, sha256, verify
from mpisim.problems.data.find import find, find_file
from mpisim.problems.data.registry import DataFile, Dataset, lookup, registry
from mpisim.problems.data.sample import write_sample


def list_text() -> str:
    """A table of the registered sets: name, rows, features, and where each was found."""
    lines = [("name", "rows", "features", "where")]
    for dataset in registry().values():
        lines.append((dataset.name, str(dataset.rows), str(dataset.features), _where(dataset)))
    widths = [max(len(line[i]) for line in lines) for i in range(3)]
    return "\n".join(
        f"{n:<{widths[0]}}  {r:>{widths[1]}}  {f:>{widths[2]}}  {w}" for n, r, f, w in lines
    )


def _where(dataset: Dataset) -> str:
    paths = [find_file(dataset, file) for file in dataset.files]
    found = [p for p in paths if p is not None]
    if not found:
        return "not here"
    if len(found) < len(paths):
        return f"{len(found)} of {len(paths)} files in {found[0].parent}"
    return str(found[0]) if len(found) == 1 else f"{found[0].parent} ({len(found)} files)"


def info_text(name: str) -> str:
    """What is known of a registered set, or of a LibSVM file; read and checked where it is here."""
    dataset = lookup(name)
    if dataset is None or Path(name).is_file():
        path = find(name)
        content = read_content(path)
        return "\n".join([str(path), f"  sha256    {sha256(content)}", *_measure(content, path)])
    lines = [f"{name} ({dataset.kind}): {dataset.rows} rows, {dataset.features} features"]
    for file in dataset.files:
        lines += _describe(dataset, file)
    return "\n".join(lines)


def _describe(dataset: Dataset, file: DataFile) -> list[str]:
    """The registry's line for a file, and the file itself where it is here."""
    path = find_file(dataset, file)
    lines = [
        f"{file.file}",
        f"  source    {' or '.join(file.urls) or 'python -m mpisim data sample'}",
        f"  labels    {file.labels}",
        f"  sha256    {file.sha256 or 'not known: only rows and features can be checked'}",
    ]
    if path is None:
        hint = f"python -m mpisim data fetch {dataset.name}"
        return [*lines, f"  here      no; get it with: {hint}"]
    content = read_content(path)
    try:
        checked = verify(dataset, file, content, str(path))
    except InputError as error:
        checked = f"NOT the registered file: {error}"
    lines += [f"  here      {path}", f"  check     {checked}"]
    return lines + (_measure(content, path) if dataset.kind == "libsvm" else [])


def _measure(content: bytes, path: Path) -> list[str]:
    """Shape, labels and norms of a LibSVM file, as read."""
    table = libsvm.parse(content, str(path))
    norms = arrange.row_norms(table)
    values, counts = np.unique(table.labels, return_counts=True)
    labels = ", ".join(f"{v:g}: {c}" for v, c in zip(values, counts, strict=True))
    if len(values) > 20:
        labels = f"real, {values[0]:g} to {values[-1]:g}"
    return [
        f"  as read   {table.rows} rows, largest index {table.features}, {len(table.data)} entries",
        f"            labels {labels}",
        f"            row norms {norms.min():g} to {norms.max():g}",
    ]


def fetch(name: str) -> str:
    """Download a registered set; says where it lies."""
    paths = fetching.fetch(name)
    return "\n".join(f"{name}: {path}" for path in paths)


def sample(path: str) -> str:
    """Write the small generated set; says where."""
    write_sample(path)
    return f"sample: {path}"
