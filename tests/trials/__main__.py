"""python -m tests.trials [--trials N] [--power N] [--races N] [--sweeps N] [--seed S] [--only ...]

Faults in real jobs, power cuts, two commands for one log, and sweeps that are killed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import time
from collections import Counter

from tests.trials import disk, power, races, sweeps, trial

KINDS = {"trial": trial, "power": power, "race": races, "sweep": sweeps}


def main() -> int:
    """Try them one after the other; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", metavar="N", type=int, help="only these many faults")
    parser.add_argument("--power", metavar="N", type=int, help="only these many power cuts")
    parser.add_argument("--races", metavar="N", type=int, help="only these many races")
    parser.add_argument("--sweeps", metavar="N", type=int, help="only these many killed sweeps")
    parser.add_argument("--seed", metavar="S", type=int, default=1)
    parser.add_argument("--only", metavar="NAME", nargs="+", help="as trial-63, power-3, race-7")
    args = parser.parse_args()
    counts = {"trial": args.trials, "power": args.power, "race": args.races}
    counts["sweep"] = args.sweeps
    if not any(counts.values()):
        counts = {"trial": 200, "power": 25, "race": 20, "sweep": 20}
    names = [f"{kind}-{i}" for kind, count in counts.items() for i in range(count or 0)]
    if any(not re.fullmatch("(trial|power|race|sweep)-[0-9]+", name) for name in args.only or ()):
        parser.error("--only: names are trial-NUMBER, power-NUMBER, race-NUMBER, sweep-NUMBER")
    print(f"seed {args.seed}; one is repeated by --seed {args.seed} --only NAME", flush=True)
    outcomes = Counter(_outcome(name, args.seed) for name in _possible(args.only or names))
    print(f"{outcomes.total()} trials: {dict(outcomes)}")
    return int(outcomes["failed"] > 0)


def _possible(names: list[str]) -> list[str]:
    """Those that can be tried here; the others are skipped with a line."""
    why = disk.possible() if any(name.startswith("power-") for name in names) else ""
    if not why:
        return names
    print(f"power cuts: skipped, as a disk for them {why}", flush=True)
    return [name for name in names if not name.startswith("power-")]


def _outcome(name: str, seed: int) -> str:
    """Try one, print how it went, and return that in a word."""
    kind, _, number = name.rpartition("-")
    chosen, start = KINDS[kind].choose(seed, int(number)), time.monotonic()
    with contextlib.redirect_stderr(io.StringIO()):
        problem, happened = KINDS[kind].attempt(chosen)
    word = "failed" if problem else "ok" if happened else "ok, not reached"
    text = f": {problem!r}" if problem else ""
    seconds = time.monotonic() - start
    print(f"{name}: {chosen.text()}: {word}{text} ({seconds:.1f} s)", flush=True)
    return word


if __name__ == "__main__":
    sys.exit(main())
