"""python -m benchmarks: run all, each in its own processes, and print the table of ratios."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.table import show

RANKS = {"round": 2, "vr_round": 2, "smooth": 2, "sweep": 2, "side_by_side": 2, "server": 8}
ALONE = ("small", "elias", "codes", "permk", "autoencoder", "large", "workers", "start")


def main() -> int:
    """Run every benchmark; 1 if one fails."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in (*RANKS, *ALONE):
            result = Path(folder) / f"{name}.json"
            print("benchmark:", name, flush=True)
            launcher = ["mpirun", "-n", str(RANKS[name])] if name in RANKS else []
            job = [*launcher, sys.executable, "-m", f"benchmarks.{name}", str(result)]
            if subprocess.run(job, check=False).returncode:
                return 1
            rows += json.loads(result.read_text())
    show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
