"""A round is short: how many functions it enters."""

from __future__ import annotations

import sys

import pytest

from mpisim.comm.communicators import OneProcess
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests.helpers import table

MOST = 40  # functions of the package, compiled ones apart
RANDK = {"name": "randk", "k": 5}


@pytest.mark.parametrize("problem", ["nonconvex-loss", "quadratic"])
def test_a_compressed_round_of_marina_enters_few_functions(problem):
    """70 in 25 files once. Less to read, to step through and to wait for."""
    tables = table({"name": "marina", "p": 1e-9, "stepsize": 0.1}, RANDK, rounds=9)
    if problem == "quadratic":
        tables["problem"] = {"name": problem, "workers": 6, "dimension": 30, "noise": 0.3}
    setup = Setup(parse(tables), OneProcess())
    for _ in range(3):
        setup.state.step(0.1)
    entered = set()

    def note(frame, event, argument):
        if event == "call" and "/mpisim/" in frame.f_code.co_filename and frame.f_back is not None:
            entered.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        setup.state.step(0.1)
    finally:
        sys.setprofile(None)
    names = sorted(f"{file.split('/mpisim/')[-1]}: {name}" for file, name in entered)
    assert len(names) <= MOST, "\n".join(names)
