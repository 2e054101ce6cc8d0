"""Downloads of registered data sets into datasets/; each is checked before it appears there."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from mpisim.core.errors import InputError
from mpisim.core.files import writing
from mpisim.core.schema import choose
from mpisim.problems.data import find
from mpisim.problems.data.content import read_content, sha256, verify
from mpisim.problems.data.find import DataFile, Dataset
from mpisim.problems.data.sample import write_sample

START_SECONDS = 20.0  # until the first byte, over all sources of a file, and between two


def fetch(name: str, timeout: float = START_SECONDS, folder: Path | None = None) -> list[Path]:
    """Download the files of a registered set, unless they are there; return their paths.

    Without ``folder`` they may also be in a folder of MPISIM_DATA. Then nothing is downloaded.
    Each is checked (sha256 of the uncompressed content, or rows and features if the registry has
    none) before it appears in ``folder``, by default datasets/. `InputError` if no byte arrives
    within ``timeout`` seconds, or if the content is wrong; then nothing is left behind. Also
    if a wrong file would be found in place of a download.
    """
    dataset = choose(find.registry(), name, "data fetch")
    if name == "sample":
        folder = folder or find.datasets_folder()
        write_sample(folder / name)
        return [folder / name]
    places = [folder] if folder else find.folders()
    present = [_present(dataset, file, places) for file in dataset.files]
    folder = folder or find.datasets_folder()
    if None in present:
        with writing(folder, InputError):
            folder.mkdir(parents=True, exist_ok=True)
            work = tempfile.TemporaryDirectory(dir=folder, prefix=".get-")
        with work as made:
            for i, file in enumerate(dataset.files):
                present[i] = _present(dataset, file, [folder]) or _fetch_file(
                    dataset, file, folder, Path(made), timeout
                )
        for file, path in zip(dataset.files, present, strict=True):
            if _present(dataset, file, places) is None:
                first = find.find_file(dataset, file, places)
                raise InputError(f"data {name!r}: {first} hides {path}; remove it")
    return [path for path in present if path is not None]


def _present(dataset: Dataset, file: DataFile, places: list[Path]) -> Path | None:
    """The file, if it is in one of the folders and has the right content."""
    path = find.find_file(dataset, file, places)
    with contextlib.suppress(InputError):
        if path is not None and verify(dataset, file, read_content(path), str(path)):
            return path
    return None


def _fetch_file(dataset: Dataset, file: DataFile, folder: Path, work: Path, timeout: float) -> Path:
    stem = dataset.name if dataset.kind == "libsvm" else file.file
    if not file.urls:
        raise InputError(
            f"data {dataset.name!r}: no download is known; put the file in MPISIM_DATA"
        )
    failures = []
    for url in file.urls:
        suffix = next((s for s in find.SUFFIXES[1:] if url.endswith(s)), "")
        archive = url.endswith(".tar.gz")
        try:
            path = _download(url, file.file if archive else None, work, timeout / len(file.urls))
            verify(dataset, file, read_content(path, url), url)
        except InputError as error:  # names the URL
            failures.append(str(error))
            continue
        except Exception as error:  # the network layers raise many; the next source may work
            failures.append(f"{url}: {_reason(error)}")
            continue
        target = folder / (stem if archive else stem + suffix)
        with writing(folder, InputError):
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
        return target
    raise InputError(
        f"data {dataset.name!r}: nothing usable was downloaded ({'; '.join(failures)}); connect to"
        f" the network, or put {stem} (plain, .xz, .bz2 or .gz) into a folder of MPISIM_DATA"
    )


def _download(url: str, member: str | None, work: Path, timeout: float) -> Path:
    """Download ``url`` into ``work``, unless it is there; returns a ``member`` of an archive."""
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    name = sha256(url.encode())[:16]  # mirrors use the same file name
    progress = _Progress(url.rsplit("/", 1)[-1]) if sys.stderr.isatty() else False
    get = pooch.HTTPDownloader(progressbar=progress, timeout=timeout)
    unpack = pooch.Untar(members=[member]) if member else None
    try:
        paths = pooch.retrieve(url, None, name, work, downloader=get, processor=unpack)
    except requests.Timeout:
        raise TimeoutError(f"nothing arrived within {timeout:g} s") from None
    return work / f"{name}.untar" / member if member else Path(paths)


class _Progress:
    """A progress bar for pooch, which shows counts."""

    def __init__(self, name: str):
        self.name, self.total, self.done, self.shown = name, 0, 0, 0

    def update(self, count: int) -> None:
        """``count`` more bytes have arrived."""
        self.done += count
        if self.done - self.shown >= 1 << 20:
            self.shown = self.done
            total = f" of {self.total / 1e6:.0f}" if self.total else ""
            print(f"\r{self.name}: {self.done / 1e6:.0f}{total} MB ", end="", file=sys.stderr)

    def reset(self) -> None:
        """Called before the last update."""
        self.done = 0

    def close(self) -> None:
        """The download is complete."""
        if self.shown:
            print(file=sys.stderr)


def _reason(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return f"HTTP status {status}"
    return str(error) if isinstance(error, TimeoutError | KeyError) else type(error).__name__
