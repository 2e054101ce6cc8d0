"""Builds the package, installs it into an empty environment, and tries it away from the checkout.

Usage: .venv/bin/python -m tools.release_check EXTRAS

EXTRAS, such as mpi,plot, are those that are installed with it. Started by `make release-check`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from mpisim.core import VERSION

ROOT = Path(__file__).resolve().parents[1]
OF_THE_CHECKOUT = {"PYTHONPATH", "MPISIM_DATA", "VIRTUAL_ENV"}

EXPERIMENT = [
    *("--set", "problem.name=logistic", "--set", "problem.data=sample"),
    *("--set", "problem.workers=4", "--set", "run.rounds=20"),
    *("--set", "method.name=marina", "--set", "method.stepsize=0.5"),
    *("--set", "compressor.name=randk", "--set", "compressor.k=10"),
]

IMPORTS = """
import importlib, importlib.metadata, pkgutil, sys
import mpisim
assert mpisim.__file__.startswith(sys.prefix), mpisim.__file__
assert importlib.metadata.version("mpisim") == mpisim.__version__ == sys.argv[1]
for module in pkgutil.walk_packages(mpisim.__path__, "mpisim.", onerror=id):
    try:
        module.name == "mpisim.__main__" or importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name != "torch":  # an extra, which is not installed here
            raise
"""

SAME_LOG = """
import mpisim
one, two = mpisim.load(["logs/one.h5", "logs/two.h5"])
assert one.attrs["ranks"] == 1 and two.attrs["ranks"] == 2
for name in one.columns:
    assert name.startswith("time_") or (one.columns[name] == two.columns[name]).all(), name
"""


def commands(python: Path) -> Iterator[list[str]]:
    """What a user does who has the package and no checkout."""
    yield [str(python), "-c", IMPORTS, VERSION]
    yield ["mpisim", "--version"]
    yield ["mpisim", "--info"]
    yield ["mpisim", "data", "list"]
    yield ["mpisim", "data", "sample"]
    yield ["mpisim", "run", *EXPERIMENT, "--out", "logs/one.h5"]
    yield ["mpirun", "-n", "2", "mpisim", "run", *EXPERIMENT, "--out", "logs/two.h5"]
    yield [str(python), "-c", SAME_LOG]
    yield ["mpisim", "verify", "logs/two.h5"]
    yield ["mpisim", "plot", "logs", "-o", "report.html"]
    yield ["mpisim", "plot", "logs", "-o", "first.png"]
    yield ["mpisim", "new", "compressor", "window"]
    yield ["mpisim", "check", "window.py"]
    yield ["mpisim", "new", "study", "mine"]
    yield ["mpisim", "study", "mine", "fig1"]


def build(folder: Path) -> Path:
    """The wheel, built from the source distribution that is built from the checkout."""
    run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], ROOT, dict(os.environ))
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_files(wheel: Path) -> None:
    """Raise `SystemExit` if the wheel lacks a file of the package that git knows."""
    listed = ["git", "-C", str(ROOT), "ls-files", "mpisim"]
    tracked = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
    missing = sorted(set(tracked) - set(zipfile.ZipFile(wheel).namelist()))
    if missing:
        raise SystemExit(f"release_check.py: {wheel.name} lacks {', '.join(missing)}")


def environment(bin_folder: Path, home: Path) -> dict[str, str]:
    """The variables of a user: nothing of the checkout, and a home that is empty."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_THE_CHECKOUT}
    path = [p for p in os.environ["PATH"].split(os.pathsep) if not Path(p).is_relative_to(ROOT)]
    return kept | {"PATH": os.pathsep.join([str(bin_folder), *path]), "HOME": str(home)}


def run(command: list[str], folder: Path, variables: dict[str, str]) -> None:
    """Run a command and print how long it took; `SystemExit` with its output if it fails."""
    shown = " ".join(word if "\n" not in word else "..." for word in command)
    start = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    print(f"{time.perf_counter() - start:6.1f} s  {shown}", flush=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nrelease_check.py: exit code {done.returncode}: {shown}")


def main() -> None:
    """Build, install, try."""
    with TemporaryDirectory(prefix="mpisim-release-") as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        check_files(wheel)
        prefix, home, work = folder / "venv", folder / "home", folder / "work"
        home.mkdir()
        work.mkdir()
        run([sys.executable, "-m", "venv", str(prefix)], folder, dict(os.environ))
        python = prefix / "bin" / "python"
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        run([*pip, "--no-compile", f"{wheel}[{sys.argv[1]}]"], folder, dict(os.environ))
        for command in commands(python):
            run(command, work, environment(prefix / "bin", home))
        print(f"{wheel.name}: installs and runs without a checkout")


if __name__ == "__main__":
    main()
