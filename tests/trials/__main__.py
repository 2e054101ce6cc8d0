"""python -m tests.trials [KIND ...] [--seed S] [--hours H] [--only NAME ...]

Trials that take too long for `make test`, one after the other; each has a name, as fault-63. What
happens is drawn from the seed, which is printed. What has been tried is kept in
build/trials/SEED.jsonl, so that the same seed goes on where it was stopped; those that failed are
tried again. With --hours they are drawn at random, without an end but that of the time.
"""

import argparse
import contextlib
import functools
import io
import json
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random, SystemRandom

from tests.comm.jobs import ROOT
from tests.trials import alike, disk, faults, messages, races, slurm, soak

# How many, what draws one from a seed and a number, and what tries it: what is wrong, and whether
# what shall happen did.
KINDS = {
    "fault": (250, faults.choose, faults.attempt),
    "share": (25, faults.choose_late, faults.attempt),
    "power": (25, faults.choose_cuts, faults.attempt),
    "race": (20, races.choose, races.attempt),
    "slurm": (2, slurm.choose, slurm.attempt),
    "messages": (100, lambda *trial: trial, messages.attempt),
    "soak": (1, soak.choose, soak.attempt),
    "processor": (3, alike.choose_setting, alike.processors),
    "layouts": (1, alike.choose_sample, alike.layouts),
    "ranks": (6, alike.choose_ranks, alike.many_ranks),
}
POSSIBLE = {"power": disk.possible, "slurm": slurm.possible}  # or why they cannot be tried here
NAME = re.compile(f"({'|'.join(KINDS)})-([0-9]+)")


def main(words: list[str] | None = None, folder: Path = ROOT / "build" / "trials") -> int:
    """Try them; 1 if one failed, also before it was stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", metavar="KIND", nargs="*", help=", ".join(KINDS))
    parser.add_argument("--seed", metavar="S", type=int)
    parser.add_argument("--hours", metavar="H", type=float, help="at random until H hours are over")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="as fault-63, power-3, race-7")
    args = parser.parse_args(words)
    if unknown := set(args.kinds) - set(KINDS):
        parser.error(f"{', '.join(sorted(unknown))}: kinds are {', '.join(KINDS)}")
    if not all(NAME.fullmatch(name) for name in args.only or ()):
        parser.error(f"--only: names are KIND-NUMBER; kinds are {', '.join(KINDS)}")
    seed = SystemRandom().randrange(10**6) if args.seed is None else args.seed
    print(f"seed {seed}; --seed {seed} goes on with it, or repeats one: --only NAME", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{seed}.jsonl"
    end = time.monotonic() + 3600 * args.hours if args.hours else float("inf")
    names = args.only or planned(args.kinds or list(KINDS), seed, bool(args.hours))
    before = {} if args.only else tried(file)
    with contextlib.suppress(KeyboardInterrupt), file.open("a", encoding="utf-8") as results:
        for name in names:
            if time.monotonic() > end:
                break
            if before.get(name, "failed") == "failed" and can_be_tried(name.rpartition("-")[0]):
                results.write(json.dumps(outcome(name, seed)) + "\n")
                results.flush()
    outcomes = Counter(tried(file).values())
    print(f"seed {seed}, {outcomes.total()} trials: {dict(outcomes)}")
    return int(outcomes["failed"] > 0)


def planned(kinds: list[str], seed: int, endless: bool) -> Iterator[str]:
    """Names: so many of each kind, or without an end, so many of each on average."""
    if not endless:
        yield from (f"{kind}-{number}" for kind in kinds for number in range(KINDS[kind][0]))
        return
    rng, numbers = Random(seed), {kind: count() for kind in kinds}
    while True:
        [kind] = rng.choices(kinds, [KINDS[kind][0] for kind in kinds])
        yield f"{kind}-{next(numbers[kind])}"


def tried(file: Path) -> dict[str, str]:
    """How each trial of this seed went when it was tried last."""
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines() if file.exists() else [])
    return {line["name"]: line["outcome"] for line in lines}


@functools.cache
def can_be_tried(kind: str) -> bool:
    """Whether this can be tried here; else a line says why not."""
    why = POSSIBLE.get(kind, str)()
    if why:
        print(f"{kind}: skipped, as it {why}", flush=True)
    return not why


def outcome(name: str, seed: int) -> dict[str, str]:
    """Try one, print how it went, and return that."""
    kind, _, number = name.rpartition("-")
    _, choose, attempt = KINDS[kind]
    trial, start = choose(seed, int(number)), time.monotonic()
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            problem, happened = attempt(trial)
        except Exception:  # a mistake of the trial's, which ends no night
            problem, happened = traceback.format_exc(), True
    word = "failed" if problem else "ok" if happened else "ok, not reached"
    text = f": {problem!r}" if problem else ""
    print(f"{name}: {trial}: {word}{text} ({time.monotonic() - start:.1f} s)", flush=True)
    return {"name": name, "outcome": word, "trial": str(trial), "problem": problem}


if __name__ == "__main__":
    sys.exit(main())
