"""The short form of the trials: real jobs that end badly, and what is left of them."""

import contextlib
import importlib
import io
import os

import pytest

from tests.comm.jobs import needs_mpirun
from tests.trials import disk, faults, power, shares
from tests.trials.entry import PLACES, Fault, arm

pytestmark = pytest.mark.mpi
INODES = Fault("use up inodes", "writing a whole file", 3, 0, 0, "", "")
SOME = {
    "a rank is killed": ("marina randk", 3, Fault("kill", "gather", 170, 1, 0, "", "")),
    "mpirun is killed": ("ef21 topk", 2, Fault("kill mpirun", "row", 200, 1, 0, "", "")),
    "a rank raises": ("diana qsgd", 3, Fault("raise", "checkpoint", 2, 2, 0, "", "")),
    "terminated": ("cd-adam scaled-sign", 2, Fault("terminate", "row", 90, 0, 0, "", "")),
    "full": ("vr-diana randk", 2, Fault("fill", "row", 60, 0, 100, "", "")),
    "not there": ("pp-marina randk", 1, Fault("unwritable", "log, end", 1, 0, 0, "", "")),
    "no memory": ("marina randk", 1, Fault("out of memory", "gather", 170, 0, 0, "", "")),
    "no inodes": ("marina randk", 1, INODES),
}


def attempted(kind, trial):
    """How it ends; what it prints is shown where it fails."""
    with contextlib.redirect_stderr(io.StringIO()) as message:
        result = kind.attempt(trial)
    print(message.getvalue())
    return result


@needs_mpirun
@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", SOME)
def test_a_job_with_a_fault(name):
    experiment, ranks, fault = SOME[name]
    if name.startswith("no ") and os.geteuid() != 0:
        pytest.skip("needs root on Linux")
    start = faults.Start(ranks, "shared", fault)
    assert attempted(faults, faults.Trial(experiment, 1, (start,))) == ("", True)


CUTS = (  # in the first run, and in the one that goes on
    power.Cut(1, Fault("cut power", "row", 60, 0, 0, "", ""), None),
    power.Cut(1, Fault("cut power", "log, a column", 25, 0, 0, "", ""), None),
)


def test_a_power_cut():
    if why := disk.possible():
        pytest.skip(why)
    assert attempted(power, power.Trial("ef21 topk", 1, CUTS, 1, "seed")) == ("", True)


def test_a_chain_of_kills():
    places = ("row", 90), ("writing a whole file", 4), ("log, whole", 1)
    kills = (Fault("kill", *place, 0, 0, "", "") for place in places)
    starts = tuple(faults.Start(1, "shared", fault) for fault in kills)
    assert attempted(faults, faults.Trial("ef21 topk", 1, starts)) == ("", True)


def test_a_host_that_sees_files_late():
    trial = shares.Trial("diana qsgd", 1, 0.3, (0.0, 0.2, 0.0, 0.1), 0)
    assert attempted(shares, trial)[0] == ""


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_there(place, monkeypatch, tmp_path):
    """A function that has another name now would let faults never happen."""
    module, names = PLACES[place]
    owner = importlib.import_module(module)
    *path, name = names.split(".")
    for inner in path:
        owner = getattr(owner, inner)
    monkeypatch.setattr(owner, name, lambda: "called")
    arm(Fault("raise", place, 2, 0, 0, "", str(tmp_path / "mark")))
    assert getattr(owner, name)() == "called"
    with pytest.raises(RuntimeError, match="one bad day"):
        getattr(owner, name)()
