"""python -m benchmarks: run all, each in its own processes, and print the table of ratios."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ON_TWO_RANKS = ("round", "vr_round", "smooth", "sweep", "side_by_side")
ALONE = ("elias", "permk", "autoencoder", "large", "start")


def main() -> int:
    """Run every benchmark; 1 if one fails."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in (*ON_TWO_RANKS, *ALONE):
            result = Path(folder) / f"{name}.json"
            print("benchmark:", name, flush=True)
            launcher = ["mpirun", "-n", "2"] if name in ON_TWO_RANKS else []
            job = [*launcher, sys.executable, "-m", f"benchmarks.{name}", str(result)]
            if subprocess.run(job, check=False).returncode:
                return 1
            rows += json.loads(result.read_text())
    print(f"\n{'what':58} {'measured':>12} {'against':>12} {'ratio':>8} {'bound':>9}")
    for row in rows:
        measured, against = (f"{row[key]:.4g} {row['unit']}" for key in ("measured", "against"))
        bound = row["bound"]  # "<= 1.5" or ">= 60"
        ratio, limit = row["ratio"], float(bound[3:] or "inf")
        kept = ratio >= limit if bound.startswith(">=") else ratio <= limit
        verdict = ("ok" if kept else "MISSED") if bound else ""
        print(f"{row['what']:58} {measured:>12} {against:>12} {ratio:8.3g} {bound:>9} {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
