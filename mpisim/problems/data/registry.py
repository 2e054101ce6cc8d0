"""The registry of data sets: names, files, shapes, checksums and sources, read from registry.tsv.

That is a tab-separated table with one line per file. The lines with one name are one data set.
"""

from __future__ import annotations

import csv
import dataclasses
from functools import lru_cache
from pathlib import Path

from mpisim.core.errors import InputError

REGISTRY = Path(__file__).with_name("registry.tsv")
COLUMNS = ("name", "part", "file", "kind", "rows", "features", "nnz", "labels", "sha256", "urls")
KINDS = ("libsvm", "idx", "cifar10", "cifar100")


@dataclasses.dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    part : "-" for a LibSVM file; train, test, train-images, ... in an image set
    file : the official file name without a compression suffix, relative to a data folder
    nnz : stored entries of a LibSVM file, if known
    labels : the labels and how many rows have each, as text
    sha256 : of the uncompressed content, if known
    urls : where to download it; from a ``.tar.gz`` the member ``file``
    """

    part: str
    file: str
    rows: int
    nnz: int | None
    labels: str
    sha256: str | None
    urls: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A registered data set: ``kind`` is one of KINDS, ``features`` the length of a sample."""

    name: str
    kind: str
    features: int
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        """Samples in all files (a file of labels holds none)."""
        return sum(f.rows for f in self.files if not f.part.endswith("labels"))


def registry() -> dict[str, Dataset]:
    """All registered data sets by name, in the file's order."""
    return read_registry(REGISTRY)


def lookup(name: str) -> Dataset | None:
    """The registered data set called ``name``, if there is one."""
    return registry().get(name)


def by_digest(sha256: str) -> Dataset | None:
    """The registered set whose first file has this sha256, if there is one."""
    return next((d for d in registry().values() if d.files[0].sha256 == sha256), None)


@lru_cache(maxsize=4)
def read_registry(path: Path) -> dict[str, Dataset]:
    """The data sets in a registry file; `InputError` names the line of a mistake."""
    sets: dict[str, Dataset] = {}
    with path.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(
                f"{path}:1: wrong header; allowed: {', '.join(COLUMNS)}, tab-separated"
            )
        for row in reader:
            entry = _entry(row, f"{path}:{reader.line_num}")
            if entry.name in sets:
                entry = dataclasses.replace(entry, files=sets[entry.name].files + entry.files)
            sets[entry.name] = entry
    return sets


def _entry(row: dict[str, str], where: str) -> Dataset:
    if None in row or None in row.values() or row["kind"] not in KINDS:
        kinds = ", ".join(KINDS)
        raise InputError(f"{where}: bad line; allowed: {len(COLUMNS)} columns, kind one of {kinds}")
    try:
        rows, features = int(row["rows"]), int(row["features"])
        nnz = None if row["nnz"] == "-" else int(row["nnz"])
    except ValueError:
        raise InputError(
            f"{where}: rows, features and nnz must be integers (nnz may be -)"
        ) from None
    file = DataFile(
        part=row["part"],
        file=row["file"],
        rows=rows,
        nnz=nnz,
        labels=row["labels"],
        sha256=None if row["sha256"] == "-" else row["sha256"],
        urls=() if row["urls"] == "-" else tuple(row["urls"].split(" ")),
    )
    return Dataset(row["name"], row["kind"], features, (file,))
