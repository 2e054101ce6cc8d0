"""A round is short: how many functions it enters."""

import sys

import pytest
from numba.core.dispatcher import Dispatcher

from mpisim.comm.communicators import OneProcess
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests.helpers import table

MOST = 40  # functions of the package; a compiled one is one call, whatever it calls
RANDK = {"name": "randk", "k": 5}


@pytest.mark.parametrize("problem", ["nonconvex-loss", "quadratic"])
def test_a_compressed_round_of_marina_enters_few_functions(problem):
    """70 once. Fewer are less to read, to step through and to wait for."""
    tables = table({"name": "marina", "p": 1e-9, "stepsize": 0.1}, RANDK, rounds=9)
    if problem == "quadratic":
        tables["problem"] = {"name": problem, "workers": 6, "dimension": 30, "noise": 0.3}
    setup = Setup(parse(tables), OneProcess())
    for _ in range(3):
        setup.state.step(0.1)
    compiled = {
        (module.__file__, name)
        for title, module in list(sys.modules.items())
        if title.startswith("mpisim.") and "__file__" in vars(module)
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher) and value.__module__ == title
    }
    entered = set()

    def note(frame, event, argument):
        if event == "call" and "/mpisim/" in frame.f_code.co_filename:
            entered.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        setup.state.step(0.1)
    finally:
        sys.setprofile(None)
    names = sorted(f"{file.split('/mpisim/')[-1]}: {name}" for file, name in entered - compiled)
    assert len(names) <= MOST, "\n".join(names)
