"""Downloads of registered data sets into datasets/; each is checked before it appears there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tarfile
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path

from mpisim.core.errors import InputError
from mpisim.core.schema import choose
from mpisim.problems.data.content import read_content, sha256, verify
from mpisim.problems.data.find import SUFFIXES, datasets_folder, find_file
from mpisim.problems.data.registry import DataFile, Dataset, registry
from mpisim.problems.data.sample import write_sample

STALL_SECONDS = 60.0  # a started download may pause this long


def fetch(name: str, start_timeout: float = 20.0, folder: Path | None = None) -> list[Path]:
    """Download the files of a registered set, unless they are there; return their paths.

    Without ``folder`` they may also be in a folder of MPISIM_DATA. Then nothing is downloaded.
    Each is checked (sha256 of the uncompressed content, or rows and features if the registry has
    none) before it appears in ``folder``, by default datasets/. `InputError` if no byte arrives
    within ``start_timeout`` seconds, or if the content is wrong; then nothing is left behind.
    """
    dataset = choose(registry(), name, "data fetch")
    if name == "sample":
        folder = folder or datasets_folder()
        write_sample(folder / name)
        return [folder / name]
    here = [None if folder else _checked(dataset, file) for file in dataset.files]
    if None not in here:
        return [path for path in here if path is not None]
    folder = folder or datasets_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A download that was abandoned may still have a file open there.
        made = tempfile.TemporaryDirectory(dir=folder, prefix=".get-", ignore_cleanup_errors=True)
    except OSError as error:
        raise _unwritable(folder, error) from None
    with made as work:
        return [
            _fetch_file(dataset, file, folder, Path(work), start_timeout) for file in dataset.files
        ]


def _fetch_file(
    dataset: Dataset, file: DataFile, folder: Path, work: Path, start_timeout: float
) -> Path:
    stem = dataset.name if dataset.kind == "libsvm" else file.file
    present = _present(dataset, file, folder, stem)
    if present is not None:
        return present
    if not file.urls:
        raise InputError(
            f"data {dataset.name!r}: no download is known; put the file in MPISIM_DATA"
        )
    failures = []
    for url in file.urls:
        try:
            got = _get(url, file, work, start_timeout / len(file.urls))
            verify(dataset, file, read_content(got, url), url)
        except InputError as error:  # names the URL
            failures.append(str(error))
            continue
        except Exception as error:  # the network layers raise many; the next source may work
            failures.append(f"{url}: {_reason(error)}")
            continue
        target = folder / (stem + _suffix(url))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(got, target)
        except OSError as error:
            raise _unwritable(folder, error) from None
        return target
    raise InputError(
        f"data {dataset.name!r}: nothing usable downloaded ({'; '.join(failures)}); allowed: a"
        f" network connection, or {stem} (plain, .xz, .bz2 or .gz) in a folder of MPISIM_DATA"
    )


def _checked(dataset: Dataset, file: DataFile) -> Path | None:
    """The file where problems find it, if it has the right content."""
    path = find_file(dataset, file)
    with contextlib.suppress(InputError):
        if path is not None and verify(dataset, file, read_content(path), str(path)):
            return path
    return None


def _present(dataset: Dataset, file: DataFile, folder: Path, stem: str) -> Path | None:
    """The file, if it is already in ``folder`` and has the right content."""
    for suffix in SUFFIXES:
        path = folder / (stem + suffix)
        with contextlib.suppress(InputError):
            if path.is_file() and verify(dataset, file, read_content(path), str(path)):
                return path
    return None


def _get(url: str, file: DataFile, work: Path, start_timeout: float) -> Path:
    """Download ``url`` into ``work``, and extract the member ``file`` if it is a tar archive.

    The archive stays in ``work``, for its other members.
    """
    download = work / sha256(url.encode())[:16]  # mirrors use the same file name
    if not download.exists():
        _download(url, download, start_timeout)
    if not url.endswith(".tar.gz"):
        return download
    member = work / "member"
    with tarfile.open(download) as archive, member.open("wb") as out:
        content = archive.extractfile(file.file)
        if content is None:
            raise KeyError(f"{file.file} is not a file in the archive")
        shutil.copyfileobj(content, out)
    return member


def _download(url: str, target: Path, start_timeout: float) -> None:
    """Download with a limit on the time to the first byte, name resolution included.

    No library limits that whole time, so the download runs in a thread, which is abandoned if
    nothing arrives.
    """
    from pooch import HTTPDownloader

    progress = _Progress(url.rsplit("/", 1)[-1])
    get = HTTPDownloader(progressbar=progress, timeout=(start_timeout, STALL_SECONDS))
    part = target.with_name(target.name + ".part")

    finished: Future[None] = Future()
    finished.add_done_callback(lambda _: progress.started.set())

    def work() -> None:
        try:
            finished.set_result(get(url, str(part), None))
        except BaseException as error:
            finished.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    if not progress.started.wait(start_timeout):
        progress.abandoned = True
        raise TimeoutError(f"nothing arrived within {start_timeout:g} s")
    finished.result()
    os.replace(part, target)


class _Progress:
    """A progress bar for pooch: notes the first byte, and shows counts on a terminal."""

    def __init__(self, name: str):
        self.name, self.total, self.done, self.shown = name, 0, 0, 0
        self.started, self.abandoned = threading.Event(), False

    def update(self, count: int) -> None:
        """``count`` more bytes have arrived."""
        if self.abandoned:
            raise TimeoutError("abandoned")
        self.started.set()
        self.done += count
        if sys.stderr.isatty() and self.done - self.shown >= 1 << 20:
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


def _suffix(url: str) -> str:
    return next((s for s in SUFFIXES[1:] if url.endswith(s) and not url.endswith(".tar.gz")), "")


def _reason(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return f"HTTP status {status}"
    return str(error) if isinstance(error, TimeoutError | KeyError) else type(error).__name__


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(f"{folder}: {error.strerror or error}; allowed: a folder that can be written")
