"""Where a trial's job writes: a disk whose power can be cut, a small file system, or a folder.

The first two need root on Linux; without it, or where they cannot be mounted, it is a folder.
"""

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
from collections.abc import Iterator
from pathlib import Path

SIZE = 48 << 20
SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
WITH_JOURNAL, WITHOUT_JOURNAL = 1, 2  # flags: what the journal holds gets to the disk first, or not
PAGE = 4096
NOW = 7  # flags of sync_file_range: start writing, and wait for it
EVERY = 0.01  # seconds between two looks at a folder
SMALL = {"fill": "size=8m", "use up inodes": "nr_inodes=64"}  # options of tmpfs, by action


class Disk:
    """ext4 on a loop device, mounted at ``folder`` in a ``with`` statement.

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

    def power_up(self) -> None:
        """Mount it again after a cut: the journal is replayed."""
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


def cut(folder: Path, flag: int) -> None:
    """Shut down the file system of ``folder`` as a power cut does: each write fails from now on."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", flag))
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def small(parent: Path, action: str) -> Iterator[Path]:
    """A folder, on a file system of its own if the action shall fill that."""
    folder = parent / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", SMALL.get(action, ""), "mpisim-trial", str(folder)]
    mounted = action in SMALL and os.geteuid() == 0
    mounted = mounted and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield folder
    finally:
        if mounted:
            _command("umount", str(folder))


class Seen:
    """What the files of a folder were, and when, while in the ``with`` statement."""

    def __init__(self, folder: Path, names: tuple[str, ...]):
        self._folder, self._stop = folder, threading.Event()
        self._states: dict[str, list[tuple[float, bytes | None]]] = {name: [] for name in names}
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def late(self, delays: dict[str, float]) -> dict[str, bytes]:
        """The content of those files that are there for one who sees them so much later."""
        end, out = time.monotonic(), {}
        for name, states in self._states.items():
            delay = delays[name]
            seen = [content for when, content in states if when <= end - delay or not delay]
            if seen and seen[-1] is not None:
                out[name] = seen[-1]
        return out

    def _look(self) -> None:
        last = False
        while not last:
            last = self._stop.wait(EVERY)
            for name, states in self._states.items():
                content = None
                with contextlib.suppress(OSError):
                    content = (self._folder / name).read_bytes()
                if not states or states[-1][1] != content:
                    states.append((time.monotonic(), content))


def possible() -> str:
    """Why there can be no disk whose power is cut here; empty if there can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "needs root on Linux"
    try:
        with tempfile.TemporaryDirectory() as name, Disk(Path(name), random.Random(0)) as disk:
            cut(disk.folder, WITHOUT_JOURNAL)
            disk.power_up()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"needs ext4 on a loop device: {error}"
    return ""


def _write_back(folder: Path, seed: float, stop: threading.Event) -> None:
    """Write back random pages of random files until ``stop``."""
    rng, libc = random.Random(seed), ctypes.CDLL(None, use_errno=True)
    while not stop.wait(rng.expovariate(100)):
        with contextlib.suppress(OSError, IndexError):
            path = rng.choice([p for p in folder.rglob("*") if p.is_file()])
            descriptor = os.open(path, os.O_RDONLY)
            pages = os.fstat(descriptor).st_size // PAGE + 1
            first, length = rng.randrange(pages), rng.randint(1, 8)
            place = ctypes.c_int64(first * PAGE), ctypes.c_int64(length * PAGE)
            libc.sync_file_range(descriptor, *place, NOW)
            os.close(descriptor)


def _command(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
