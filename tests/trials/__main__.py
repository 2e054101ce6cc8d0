"""python -m tests.trials [--trials N] [--seed S] [--only NUMBER]: faults in real jobs."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections import Counter

from tests.trials.trial import attempt, choose


def main() -> int:
    """Try them one after the other; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="+", help="the trials of these numbers")
    args = parser.parse_args()
    numbers = range(args.trials) if args.only is None else args.only
    print(f"seed {args.seed}; a trial is repeated by --seed {args.seed} --only NUMBER", flush=True)
    outcomes: Counter[str] = Counter()
    for number in numbers:
        trial, start = choose(args.seed, number), time.monotonic()
        with contextlib.redirect_stderr(io.StringIO()):
            problem, happened = attempt(trial)
        word = "failed" if problem else "ok" if happened else "ok, not reached"
        outcomes[word] += 1
        text = f": {problem!r}" if problem else ""
        seconds = time.monotonic() - start
        print(f"{number}: {trial.text()}: {word}{text} ({seconds:.1f} s)", flush=True)
    print(f"{len(numbers)} trials: {dict(outcomes)}")
    return int(outcomes["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
