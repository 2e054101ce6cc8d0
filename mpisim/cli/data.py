"""The sub-command `mpisim data`: list, info, fetch, sample, convert."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from mpisim.analysis.formatting import table
from mpisim.core.errors import InputError
from mpisim.problems.data import arrange, formats
from mpisim.problems.data import fetch as fetching
from mpisim.problems.data import find as finding
from mpisim.problems.data.content import read_content, sha256, verify
from mpisim.problems.data.find import DataFile, Dataset, find, find_file, lookup, registry
from mpisim.problems.data.formats import to_libsvm
from mpisim.problems.data.sample import write_sample


def list_all(args: argparse.Namespace) -> None:
    print(list_text())


def info(args: argparse.Namespace) -> None:
    for name in args.names:
        print(info_text(name))


def fetch(args: argparse.Namespace) -> None:
    for name in args.names:
        print(fetched(name))


def sample(args: argparse.Namespace) -> None:
    """Write the small generated set."""
    write_sample(args.file)
    print(f"sample: {args.file}")


def convert(args: argparse.Namespace) -> None:
    """Write the LibSVM form of a file."""
    rows, features = to_libsvm(args.file, args.out, args.label, args.zero_based)
    print(f"{args.out}: {rows} rows, {features} features")


def list_text() -> str:
    """A table of the registered sets: name, rows, features, and where each was found."""
    lines = [(d.name, d.rows, d.features, _where(d)) for d in registry().values()]
    return table(["name", "rows", "features", "where"], lines)


def _where(dataset: Dataset) -> str:
    paths = [path for file in dataset.files if (path := find_file(dataset, file)) is not None]
    if not paths:
        return "not here"
    if len(paths) < len(dataset.files):
        return f"{len(paths)} of {len(dataset.files)} files in {paths[0].parent}"
    return str(paths[0]) if len(paths) == 1 else f"{paths[0].parent} ({len(paths)} files)"


def info_text(name: str) -> str:
    """A description of a registered set or a LibSVM file, which is read and checked if present."""
    dataset = lookup(name)
    if dataset is None or Path(name).is_file():
        path = find(name)
        content = read_content(path)
        return "\n".join([str(path), f"  sha256    {sha256(content)}", *_measure(content, path)])
    head = f"{name} ({dataset.kind}): {dataset.rows} rows, {dataset.features} features"
    return "\n".join([head, *(line for f in dataset.files for line in _describe(dataset, f))])


def _describe(dataset: Dataset, file: DataFile) -> list[str]:
    """The registry's entry for a file, and the file itself if it is present."""
    path = find_file(dataset, file)
    lines = [
        file.file,
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
    """Shape, labels and norms of a LibSVM file."""
    table = formats.parse(content, str(path))
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


def fetched(name: str) -> str:
    """Download a registered set, unless a folder of MPISIM_DATA has it; returns where it is."""
    paths, downloads = fetching.fetch(name), finding.datasets_folder().resolve()
    there = ("" if downloads in p.resolve().parents else ", found by MPISIM_DATA" for p in paths)
    return "\n".join(f"{name}: {path}{text}" for path, text in zip(paths, there, strict=True))
