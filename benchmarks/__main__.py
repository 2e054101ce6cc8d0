"""python -m benchmarks: all of them, each in processes of its own, and the table of ratios."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

JOBS = [
    ["mpirun", "-n", "2", sys.executable, "-m", "benchmarks.round"],
    ["mpirun", "-n", "2", sys.executable, "-m", "benchmarks.vr_round"],
    ["mpirun", "-n", "2", sys.executable, "-m", "benchmarks.smooth"],
    ["mpirun", "-n", "2", sys.executable, "-m", "benchmarks.sweep"],
    [sys.executable, "-m", "benchmarks.elias"],
    [sys.executable, "-m", "benchmarks.permk"],
    [sys.executable, "-m", "benchmarks.autoencoder"],
    [sys.executable, "-m", "benchmarks.large"],
]


def main() -> int:
    """Run every job; 1 if a ratio misses its bound."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, job in enumerate(JOBS):
            result = Path(folder) / f"{number}.json"
            print("benchmark:", " ".join(job[-1:]), flush=True)
            if subprocess.run([*job, str(result)], check=False).returncode:
                return 1
            rows += json.loads(result.read_text())
    print(f"\n{'what':58} {'measured':>12} {'against':>12} {'ratio':>8} {'bound':>9}")
    for row in rows:
        measured, against = (
            f"{row['measured']:.4g} {row['unit']}",
            f"{row['against']:.4g} {row['unit']}",
        )
        print(
            f"{row['what']:58} {measured:>12} {against:>12} {row['ratio']:8.3g}"
            f" {row['bound']:>9} {verdict(row)}"
        )
    return 0


def verdict(row: dict) -> str:
    """Whether the ratio is within its bound, "<= 1.5" or ">= 60"."""
    if not row["bound"]:
        return ""
    sign, number = row["bound"].split()
    kept = row["ratio"] <= float(number) if sign == "<=" else row["ratio"] >= float(number)
    return "ok" if kept else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
