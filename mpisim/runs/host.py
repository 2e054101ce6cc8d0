"""Where a run takes place: versions, the MPI library, the commit, hosts, threads and cores."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import platform
import socket
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

import h5py

from mpisim.comm.job import run_job
from mpisim.core import VERSION
from mpisim.core.home import cache_place, writable
from mpisim.core.imports import PACKAGE
from mpisim.core.machine import usable_cores
from mpisim.core.registry import installed_packages

LIBRARIES = ("numpy", "scipy", "h5py", "numba", "llvmlite", "scikit-learn", "mpi4py")
GIT_SECONDS = 10.0  # far more than git takes
BOOT = Path("/proc/sys/kernel/random/boot_id")  # Linux: one for each machine that runs


def guarded(body: Callable[..., int]) -> int:
    """Start the job of a command: `run_job`, on ranks that all have the same software."""
    return run_job(body, software)


def info_text() -> str:
    """The text of `mpisim --info`: what a bug report should contain, one item in each line."""
    cache_path = cache_place()
    remark = "" if writable(cache_path) else " (cannot be written)"
    rows = {
        "mpisim": f"{VERSION} ({PACKAGE})",
        "Python": f"{platform.python_version()} on {platform.platform()}",
        "libraries": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        "HDF5": h5py.version.hdf5_version,
        "MPI": mpi_library(),
        "BLAS": blas(threads=True) or "none found",
        "cores": f"{len(usable_cores())} for this process, {os.cpu_count()} in all",
        "plugins": ", ".join(installed_packages()) or "no package has any",
        "MPISIM_DATA": os.environ.get("MPISIM_DATA") or "not set",
        "cache": f"{cache_path}{remark}",
    }
    width = max(map(len, rows)) + 2
    return "\n".join(f"{name:<{width}}{value}" for name, value in rows.items())


def provenance() -> dict[str, str | int]:
    """The attributes of a log that describe software and machine. Does not start MPI."""
    network = os.environ.get("MPISIM_NETWORK")  # set by tools.netlab, the network it made
    return {
        "package_version": VERSION,
        "python": platform.python_version(),
        **{name.replace("-", "_"): version(name) for name in LIBRARIES},
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "cores": len(usable_cores()),
        **({"network": network} if network else {}),
    }


def software() -> dict[str, str]:
    """What must be the same on all ranks of a job: versions, and the source of mpisim itself."""
    return {
        "mpisim": f"{VERSION} with source {source()}",
        "Python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "MPI": mpi_library(),
    }


@cache
def version(distribution: str) -> str:
    """The version of an installed distribution."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


@cache
def source() -> str:
    """The first digits of the sha256 of the package's files, with their names."""
    digest = hashlib.sha256()
    for path in sorted(
        path for kind in ("*.py", "*.toml", "*.[ct]sv") for path in PACKAGE.rglob(kind)
    ):
        digest.update(f"{path.relative_to(PACKAGE)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def mpi_library() -> str:
    """Name and version of the MPI library, or why it cannot be loaded. Does not call MPI_Init."""
    try:
        import mpi4py

        # Get_library_version works before MPI_Init, which a plain import would call.
        before, mpi4py.rc.initialize = mpi4py.rc.initialize, False
        try:
            from mpi4py import MPI
        finally:
            mpi4py.rc.initialize = before
    except (ImportError, RuntimeError, OSError) as error:
        return f"cannot be loaded: {str(error).strip().splitlines()[0]}"
    return MPI.Get_library_version().strip("\0 \n").splitlines()[0].split(", package")[0]


def blas(threads: bool = False) -> str:
    """The BLAS libraries in use, with their versions, and with their threads if asked for."""
    import numpy  # noqa: F401  (loads its BLAS)
    from threadpoolctl import threadpool_info

    texts = []
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            text, count = f"{pool['internal_api']} {pool['version'] or ''}".strip(), ""
            if threads:
                count = f", {pool['num_threads']} thread{'s' * (pool['num_threads'] != 1)}"
            texts.append(text + count)
    return ("; " if threads else ", ").join(dict.fromkeys(texts))  # each once


@cache
def commit(package: Path) -> dict[str, str | bool]:
    """``git_commit`` and ``git_dirty``, or nothing where git does not keep ``package``.

    git_dirty : whether tracked files of the package differ from the commit
    """
    status = "status", "--porcelain=v2", "--branch", "--untracked-files=no", "."
    lines = _git(package, "__init__.py", *status)
    head = [line.split()[-1] for line in lines or () if line.startswith("# branch.oid ")]
    dirty = any(not line.startswith("#") for line in lines or ())
    return {"git_commit": head[0], "git_dirty": dirty} if head else {}


def is_committed(folder: Path) -> bool:
    """Whether git keeps the modules and grids of a study in ``folder`` as they are."""
    status = "status", "--porcelain", "--untracked-files=all", "--", "*.py", "*.toml"
    return _git(folder, ".", *status) == []


def _git(folder: Path, kept: str, *words: str) -> list[str] | None:
    """The lines of a git command in a folder; None unless git keeps the file ``kept`` there."""
    for command in (("ls-files", "--error-unmatch", kept), words):
        try:
            call, nothing = ["git", "-C", str(folder), *command], subprocess.DEVNULL
            text = subprocess.check_output(
                call, text=True, timeout=GIT_SECONDS, stdin=nothing, stderr=nothing
            )
        except (OSError, subprocess.SubprocessError):
            return None
    return text.splitlines()


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a rank is.

    host : its name
    machine : the same for all hosts that share cores, as containers and network namespaces do
    cores : that the rank may use
    """

    host: str
    machine: str
    cores: frozenset[int]


def here() -> Place:
    """The place of this rank."""
    host = machine = socket.gethostname()
    with suppress(OSError):
        machine = BOOT.read_text(encoding="ascii").strip()
    return Place(host, machine, usable_cores())


def hosts(places: Iterable[Place]) -> str:
    """The names of the hosts."""
    return ", ".join(sorted({place.host for place in places}))


def oversubscribed(places: Iterable[Place]) -> bool:
    """Whether a machine has more ranks than they have cores."""
    machines: dict[str, list[frozenset[int]]] = {}
    for place in places:
        machines.setdefault(place.machine, []).append(place.cores)
    return any(len(ranks) > len(frozenset.union(*ranks)) for ranks in machines.values())
