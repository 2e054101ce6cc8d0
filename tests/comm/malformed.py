"""python -m tests.comm.malformed RANKS [NAME ...]: bad inputs under mpirun, real jobs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.comm.jobs import mpirun
from tests.malformed import CASES, prepare


def trial(ranks: int, arguments: list[str], said: list[str]) -> str:
    """What is wrong with the way the job ends; empty when all is well."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        job = mpirun(ranks, "-m", "mpisim", *(a.replace("{d}", folder) for a in arguments))
    lines = [line for line in job.stderr.splitlines() if line.startswith("mpisim: ")]
    problems = []
    if job.returncode not in (1, 2):
        problems.append(f"exit code {job.returncode}")
    if len(lines) != 1 or "Traceback" in job.stderr:
        problems.append(f"{len(lines)} lines: {job.stderr!r}")
    if lines and not all(word in lines[0].replace(folder, "") for word in said):
        problems.append(f"{lines[0]!r} does not say {said}")
    return "; ".join(problems)


def main() -> int:
    """Try the named cases, or all."""
    ranks, names = int(sys.argv[1]), sys.argv[2:]
    failed = 0
    chosen = [case for case in CASES if not names or case[0] in names]
    for name, arguments, said in chosen:
        problem = trial(ranks, arguments, said)
        failed += bool(problem)
        print(f"{name}: {problem or 'ok'}", flush=True)
    print(f"{len(chosen)} bad inputs on {ranks} ranks, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
