"""Runs what a figure of a paper shows and its logs lack: mpirun -n R python run/figure.py NAME.

The grid is run/NAME.toml, one that figures with the same runs share, or what FILES of the figure's
module names for the second argument, SCALE, which also picks the settings from its SCALES. Data
sets that are not here are left out, or others take their place, as its INSTEAD says. A figure that
shows no runs has run/NAME.py instead, whose `measure(folder, settings)` rank 0 calls. Started by
`make NAME`.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from importlib import import_module
from pathlib import Path

from mpisim.analysis import papers
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.problems.data.find import available
from mpisim.problems.torch import samples
from mpisim.runs.launch import guarded
from mpisim.runs.sweep.grid import read
from mpisim.runs.sweep.points import exit_code
from mpisim.runs.sweep.runner import counts, sweep


def settings_of(name: str, scale: str):
    """What the figure's module has for a scale."""
    scales = papers.load(name).SCALES
    if scale not in scales:
        raise InputError(f"SCALE={scale} is not allowed; it must be {' or '.join(scales)}")
    return scales[scale]


def grid_of(name: str, scale: str) -> tuple[Path, list[dict]]:
    """The folder for the logs, and the points whose data is here; says what is left out."""
    module = papers.load(name)
    _, grid = read(_file(name, scale), settings_of(name, scale))
    folder, methods = papers.folder_of(name), getattr(module, "METHODS", None)
    grid = [point for point in grid if methods is None or point["method"]["name"] in methods]
    instead = getattr(module, "INSTEAD", {})
    for point in grid:
        if _data(point) in instead and not _here(point):
            point["problem"]["data"] = instead[_data(point)]
    gone = list(dict.fromkeys(_data(point) for point in grid if not _here(point)))
    for data in gone:
        print(f"{data}: left out, it is not here; `mpisim data fetch {data}` downloads it")
    left = [point for point in grid if _data(point) not in gone]
    if not left:
        raise InputError("none of the data is here; MPISIM_DATA names folders with data sets")
    return folder, left


def _file(name: str, scale: str) -> Path:
    stem = getattr(papers.load(name), "FILES", {}).get(scale, papers.grid_name(name))
    return Path("run") / f"{stem}.toml"


def _data(point: dict) -> str:
    return point["problem"].get("data", "")


def _here(point: dict) -> bool:
    data = _data(point)
    if point["problem"].get("name") == "torch":
        return samples.available(data)
    return not data or available(data)


def main() -> int:
    """Sweep; the exit code is that of `mpisim sweep`."""
    parser = argparse.ArgumentParser(description="run what a figure shows")
    parser.add_argument("name", choices=papers.FIGURES)
    parser.add_argument("scale", nargs="?", default="quick")
    args = parser.parse_args()

    def measure() -> int:
        settings = settings_of(args.name, args.scale)
        module = import_module(args.name.replace("-", "_"))  # in the folder of this file
        module.measure(papers.folder_of(args.name), settings)
        return 0

    def body(comm) -> int:
        if not _file(args.name, args.scale).is_file():
            return on_first(comm, measure)
        folder, grid = on_first(comm, lambda: grid_of(args.name, args.scale))
        points = sweep(folder, grid, comm, shlex.join(sys.argv))
        if comm.rank == 0:
            print(f"{counts(points)}; logs in {folder}", flush=True)
        return exit_code(points)

    return guarded(body)


if __name__ == "__main__":
    sys.exit(main())
