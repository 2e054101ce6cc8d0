"""The registry of data sets, read from registry.tsv, and where they are on this machine.

The registry is a tab-separated table with one line per file: names, shapes, checksums and sources.
The lines with one name are one data set.
"""

from __future__ import annotations

import csv
import dataclasses
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from mpisim.core.errors import InputError, suggestion

SUFFIXES = ("", ".xz", ".bz2", ".gz")
ROOT = Path(__file__).resolve().parents[3]  # the repository, if mpisim runs from one
REGISTRY = Path(__file__).with_name("registry.tsv")


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
    """A registered data set.

    kind : "libsvm", "idx", "cifar10" or "cifar100"; features : the length of a sample
    """

    name: str
    kind: str
    features: int
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> int:
        """Samples in all files (a file of labels holds none)."""
        return sum(f.rows for f in self.files if not f.part.endswith("labels"))


@cache
def registry() -> dict[str, Dataset]:
    """All registered data sets by name, in the file's order."""
    sets: dict[str, Dataset] = {}
    with REGISTRY.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            name, before = row["name"], sets.get(row["name"])
            file = DataFile(
                part=row["part"],
                file=row["file"],
                rows=int(row["rows"]),
                nnz=None if row["nnz"] == "-" else int(row["nnz"]),
                labels=row["labels"],
                sha256=None if row["sha256"] == "-" else row["sha256"],
                urls=() if row["urls"] == "-" else tuple(row["urls"].split(" ")),
            )
            files = (*before.files, file) if before else (file,)
            sets[name] = Dataset(name, row["kind"], int(row["features"]), files)
    return sets


def lookup(name: str) -> Dataset | None:
    """The registered data set called ``name``, if there is one."""
    return registry().get(name)


def by_digest(sha256: str) -> Dataset | None:
    """The registered set whose first file has this sha256, if there is one."""
    return next((d for d in registry().values() if d.files[0].sha256 == sha256), None)


def datasets_folder() -> Path:
    """Where downloads go: datasets/ of the repository, else of the current folder."""
    return ROOT / "datasets" if (ROOT / "setup.cfg").is_file() else Path("datasets")


def folders() -> list[Path]:
    """Where to look for data sets: each folder of MPISIM_DATA, then `datasets_folder`."""
    named = [Path(f).expanduser() for f in os.environ.get("MPISIM_DATA", "").split(":") if f]
    return [*named, datasets_folder()]


def find(name: str) -> Path:
    """The LibSVM file for ``problem.data``: a path to a file, or a name to look for in `folders`.

    NAME is found as NAME, NAME.xz, NAME.bz2 or NAME.gz, and a registered set also under its
    official file name. `InputError` says where it was looked for.
    """
    path = os.path.expanduser(name)
    if is_path(name):
        return Path(path)
    if not name or os.sep in name:
        what = "is a folder" if os.path.isdir(path) else "no such file"
        raise InputError(
            f"data {name!r}: {what}; allowed: a path to a LibSVM file (plain, .gz, .bz2 or .xz), or"
            " a name that `python -m mpisim data list` shows"
        )
    dataset = lookup(name)
    if dataset is not None and dataset.kind != "libsvm":
        raise InputError(f"data {name!r}: an image set; allowed here: a LibSVM file or set")
    path_of_set = locate(name) if dataset is None else find_file(dataset, dataset.files[0])
    if path_of_set is None:
        raise missing(name)
    return path_of_set


def is_path(name: str) -> bool:
    """Whether ``problem.data`` is the path of a file."""
    return os.path.isfile(os.path.expanduser(name))  # also False for what cannot be a path


def registered(name: str) -> Dataset | None:
    """The registered data set that ``problem.data`` names, unless it is the path of a file."""
    return None if is_path(name) else lookup(name)


def available(name: str) -> bool:
    """Whether a data set, of rows or of (training) images, is on this machine."""
    dataset = lookup(name)
    if dataset is not None and dataset.kind != "libsvm":
        files = [file for file in dataset.files if file.part.startswith("train")]
        return all(find_file(dataset, file) is not None for file in files)
    try:
        return bool(find(name))
    except InputError:
        return False


def find_file(
    dataset: Dataset, file: DataFile, places: Iterable[Path] | None = None
) -> Path | None:
    """Where one file of a registered set is, or None if it is not in ``places`` (`folders`)."""
    names = (dataset.name, file.file) if dataset.kind == "libsvm" else (file.file,)
    return locate(*names, places=places)


def locate(*names: str, places: Iterable[Path] | None = None) -> Path | None:
    """The first file called NAME or NAME.xz, .bz2, .gz for any of ``names`` in `folders`."""
    for folder in folders() if places is None else places:
        for name in names:
            for suffix in SUFFIXES:
                path = folder / (name + suffix)
                if os.path.isfile(path):
                    return path
    return None


def missing(name: str) -> InputError:
    """The error for a data set that is not found: where it was looked for and how to get it."""
    places = ", ".join(str(f) for f in folders())
    looked = (
        f"data {name!r}: not found (plain, .xz, .bz2 or .gz) in the folders of MPISIM_DATA and"
        f" datasets/: {places}"
    )
    if lookup(name) is not None:
        return InputError(f"{looked}; get it with: python -m mpisim data fetch {name}")
    sets = [n for n, d in registry().items() if d.kind == "libsvm"]
    names = ", ".join(sets)
    return InputError(
        f"{looked}; {suggestion(name, sets)}allowed: a path, a file in these folders, or what"
        f" `python -m mpisim data fetch NAME` gets: {names}"
    )
