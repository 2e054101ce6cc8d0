"""Experiments on 1, 2, 3 and 6 ranks, in both layouts: all of them, then samples."""

import dataclasses

from tests.comm.jobs import ROOT, mpirun


@dataclasses.dataclass(frozen=True)
class Trial:
    """The first has all experiments in all layouts."""

    seed: int
    number: int

    def sample(self) -> str:
        """What tests/comm/layouts.py is told."""
        return str(1000 * self.seed + self.number) if self.number else "--all"


choose = Trial


def attempt(trial: Trial) -> tuple[str, bool]:
    """What differs; it always happens."""
    job = mpirun(6, "-m", "tests.comm.layouts", trial.sample(), cwd=ROOT, timeout=None)
    return "" if job.returncode == 0 else job.stdout[-3000:] + job.stderr[-3000:], True
