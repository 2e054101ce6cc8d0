"""python -m benchmarks: run all, each in its own processes, and print the table of ratios.

What has missed a bound runs again while there is time: noise is not to be called a missed bound.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

from benchmarks.table import show, verdict

RANKS = {"round": 2, "vr_round": 2, "smooth": 2, "sweep": 2, "side_by_side": 2, "server": 8}
ALONE = (
    "small",
    "ensemble",
    "elias",
    "codes",
    "permk",
    "autoencoder",
    "large",
    "passes",
    "workers",
    "start",
    "fleet",
)


def main() -> int:
    """Run every benchmark; 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help=f"of {', '.join((*RANKS, *ALONE))}"
    )
    parser.add_argument(
        "--minutes", type=float, default=5.0, help="what has missed a bound runs again in them"
    )
    arguments = parser.parse_args()
    end = monotonic() + 60 * arguments.minutes
    runs: dict[str, list[dict]] = {}
    seconds: dict[str, float] = {}
    names = arguments.names or [*RANKS, *ALONE]
    while names:
        for name in names:
            start = monotonic()
            rows = run(name)
            if rows is None:
                return 1
            seconds[name] = monotonic() - start
            for row in rows:
                runs.setdefault(row["what"], []).append(row | {"benchmark": name})
        unclear = dict.fromkeys(rows[0]["benchmark"] for rows in runs.values() if is_unclear(rows))
        names, left = [], end - monotonic()
        for name in sorted(unclear, key=seconds.__getitem__):  # as many as there is time for
            left -= seconds[name]
            names += [name] if left > 0 else []
    show(runs)
    return 0


def is_unclear(rows: list[dict]) -> bool:
    """Whether the runs so far do not tell if a bound is kept."""
    return verdict([row["ratio"] for row in rows], rows[0]["bound"]) == "cannot tell"


def run(name: str) -> list[dict] | None:
    """The rows of a benchmark; None if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "rows.json"
        print("benchmark:", name, flush=True)
        launcher = ["mpirun", "-n", str(RANKS[name])] if name in RANKS else []
        job = [*launcher, sys.executable, "-m", f"benchmarks.{name}", str(result)]
        if subprocess.run(job, check=False).returncode:
            return None
        return json.loads(result.read_text())


if __name__ == "__main__":
    sys.exit(main())
