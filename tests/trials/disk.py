"""A disk whose power can be cut: ext4 on a loop device. Needs root on Linux."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import random
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path

SIZE = 48 << 20
SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
WITH_JOURNAL, WITHOUT_JOURNAL = 1, 2  # flags: what the journal holds gets to the disk first, or not
PAGE = 4096
NOW = 7  # flags of sync_file_range: start writing, and wait for it


class Disk:
    """The file system ``folder`` in a ``with`` statement; its image is a file beside it.

    While it is used, it writes back parts of files at random, as a system does that is short of
    memory, so that some changes of a file are on the disk and others are not.
    """

    def __init__(self, parent: Path, rng: random.Random):
        self.folder, self._image = parent / "disk", parent / "image"
        self._rng, self._busy = rng, threading.Event()

    def __enter__(self) -> Disk:
        self.folder.mkdir()
        with self._image.open("wb") as file:
            file.truncate(SIZE)
        _command("mkfs.ext4", "-q", "-F", str(self._image))
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        self._busy.set()
        self._unmount()
        self._image.unlink()

    def cut(self) -> None:
        """Cut the power: what is not on the disk now never will be, and each write fails."""
        self._busy.set()
        cut(self.folder, self._rng.choice([WITH_JOURNAL, WITHOUT_JOURNAL]))

    def power_up(self) -> None:
        """Mount it again: the journal is replayed."""
        self._busy.set()
        self._unmount()
        self._mount()

    def _mount(self) -> None:
        _command("mount", "-o", "loop,commit=1", str(self._image), str(self.folder))
        self._busy = threading.Event()
        seed = self._rng.random()
        threading.Thread(target=_write_back, args=(self.folder, seed, self._busy)).start()

    def _unmount(self) -> None:
        for _ in range(100):  # a process that is ending may still have a file open
            done = subprocess.run(["umount", str(self.folder)], capture_output=True, check=False)
            if done.returncode == 0:
                return
            time.sleep(0.1)
        _command("umount", "--lazy", str(self.folder))


def cut(folder: Path, flag: int = WITHOUT_JOURNAL) -> None:
    """Shut down the file system of ``folder`` as a power cut does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", flag))
    finally:
        os.close(descriptor)


def possible() -> str:
    """Why there can be no such disk here; empty if there can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "needs root on Linux"
    try:
        with tempfile.TemporaryDirectory() as name, Disk(Path(name), random.Random(0)) as disk:
            disk.cut()
            disk.power_up()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"needs ext4 on a loop device: {error}"
    return ""


def _write_back(folder: Path, seed: float, stop: threading.Event) -> None:
    """Write back random pages of random files until ``stop``."""
    rng, libc = random.Random(seed), ctypes.CDLL(None, use_errno=True)
    while not stop.wait(rng.expovariate(100)):
        with contextlib.suppress(OSError, IndexError):
            path = rng.choice([p for p in folder.iterdir() if p.is_file()])
            descriptor = os.open(path, os.O_RDONLY)
            pages = os.fstat(descriptor).st_size // PAGE + 1
            first, length = rng.randrange(pages), rng.randint(1, 8)
            place = ctypes.c_int64(first * PAGE), ctypes.c_int64(length * PAGE)
            libc.sync_file_range(descriptor, *place, NOW)
            os.close(descriptor)


def _command(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
