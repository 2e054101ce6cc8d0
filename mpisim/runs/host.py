"""Where a run takes place: versions, the MPI library, the commit, hosts, threads and cores."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import platform
import socket
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from mpisim.comm.job import run_job
from mpisim.core import packages
from mpisim.core.cores import usable
from mpisim.core.imports import PACKAGE
from mpisim.core.version import VERSION

LIBRARIES = ("numpy", "scipy", "h5py", "numba", "llvmlite", "scikit-learn", "mpi4py")


def info_text() -> str:
    """The text of `mpisim --info`: what a bug report should contain, one item in each line."""
    rows = {
        "mpisim": f"{VERSION} ({PACKAGE})",
        "Python": f"{platform.python_version()} on {platform.platform()}",
        "libraries": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        "HDF5": _hdf5_version(),
        "MPI": mpi_library(),
        "BLAS": blas_threads(),
        "cores": f"{len(usable())} for this process, {os.cpu_count()} in all",
        "plugins": ", ".join(packages.installed()) or "no package has any",
        "MPISIM_DATA": os.environ.get("MPISIM_DATA") or "not set",
        "cache": cache_text(),
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
        "cores": len(usable()),
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
def source() -> str:
    """The first digits of the sha256 of the package's files, with their names."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
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


def blas_threads() -> str:
    """The BLAS libraries in use with their threads, or the environment's settings."""
    import numpy  # noqa: F401  (loads its BLAS)

    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        return ", ".join(f"{name}={os.environ.get(name, 'unset')}" for name in names)
    texts = (
        f"{pool['internal_api']} {pool['version'] or ''}".strip()
        + f", {pool['num_threads']} thread{'s' if pool['num_threads'] != 1 else ''}"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    )
    return "; ".join(dict.fromkeys(texts)) or "none found"


def blas() -> str:
    """The BLAS libraries in use, with their versions; empty if this is not known."""
    import numpy  # noqa: F401  (loads its BLAS)

    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return ""
    pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return ", ".join(
        dict.fromkeys(f"{p['internal_api']} {p['version'] or ''}".strip() for p in pools)
    )


def cache_text() -> str:
    """The cache folder, and whether it can be written."""
    from mpisim.core.cache_folder import folder

    path = folder()
    place = next((p for p in (path, *path.parents) if p.exists()), path)
    return str(path) if os.access(place, os.W_OK) else f"{path} (cannot be written)"


@cache
def version(distribution: str) -> str:
    """The version of an installed distribution."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _hdf5_version() -> str:
    try:
        import h5py
    except ImportError as error:
        return f"cannot be loaded: {error}"
    return h5py.version.hdf5_version


SECONDS = 10.0  # far more than git takes


@cache
def commit(package: Path) -> dict[str, str | bool]:
    """``git_commit`` and ``git_dirty``, or nothing where git does not keep ``package``.

    git_dirty : whether tracked files of the package differ from the commit
    """
    try:
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        said = _git(package, "status", "--porcelain=v2", "--branch", "--untracked-files=no", ".")
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = said.splitlines()
    head = [line.split()[-1] for line in lines if line.startswith("# branch.oid ")]
    dirty = any(not line.startswith("#") for line in lines)
    return {"git_commit": head[0], "git_dirty": dirty} if head else {}


def is_committed(folder: Path) -> bool:
    """Whether git keeps the modules and grids of a study in ``folder`` as they are."""
    try:
        _git(folder, "ls-files", "--error-unmatch", ".")
        words = ("status", "--porcelain", "--untracked-files=all", "--", "*.py", "*.toml")
        return not _git(folder, *words)
    except (OSError, subprocess.SubprocessError):
        return False


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout


BOOT = Path("/proc/sys/kernel/random/boot_id")  # Linux: one for each machine that runs


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
    host = socket.gethostname()
    try:
        machine = BOOT.read_text(encoding="ascii").strip()
    except OSError:
        machine = host
    return Place(host, machine, usable())


def hosts(places: Iterable[Place]) -> str:
    """The names of the hosts."""
    return ", ".join(sorted({place.host for place in places}))


def oversubscribed(places: Iterable[Place]) -> bool:
    """Whether a machine has more ranks than they have cores."""
    machines: dict[str, list[frozenset[int]]] = {}
    for place in places:
        machines.setdefault(place.machine, []).append(place.cores)
    return any(len(ranks) > len(frozenset.union(*ranks)) for ranks in machines.values())


def guarded(body: Callable[..., int]) -> int:
    """`run_job`, on ranks that all have the same software."""
    return run_job(body, software)
