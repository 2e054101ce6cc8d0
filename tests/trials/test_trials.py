"""The short form of the trials: real jobs that end badly, and what is left of them."""

import contextlib
import io
import os
import pkgutil

import pytest

from tests.comm.jobs import needs_mpirun
from tests.trials import disk, faults
from tests.trials.entry import PLACES, Fault, arm

pytestmark = pytest.mark.mpi
SOME = {
    "a rank is killed": ("marina randk", 3, Fault("kill", "gather", 170, 1)),
    "mpirun is killed": ("ef21 topk", 2, Fault("kill mpirun", "row", 200, 1)),
    "a rank raises": ("diana qsgd", 3, Fault("raise", "checkpoint", 2, 2)),
    "terminated": ("cd-adam scaled-sign", 2, Fault("terminate", "row", 90)),
    "full": ("vr-diana randk", 2, Fault("fill", "row", 60, spare=100)),
    "not there": ("pp-marina randk", 1, Fault("unwritable", "log, end", 1)),
    "no memory": ("marina randk", 1, Fault("out of memory", "gather", 170)),
    "no inodes": ("marina randk", 1, Fault("use up inodes", "writing a whole file", 3)),
}


def require_resumed(experiment, *starts, **more):
    """Each is ended by its fault; what is printed is shown where something is wrong."""
    with contextlib.redirect_stderr(io.StringIO()) as message:
        result = faults.attempt(faults.Trial(experiment, 1, starts, **more))
    print(message.getvalue())
    assert result == ("", True)


def on_one_rank(action, *places, **more):
    """A start for each place and call."""
    return [faults.Start(1, "shared", Fault(action, *place, **more)) for place in places]


@needs_mpirun
@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", SOME)
def test_a_job_with_a_fault(name):
    experiment, ranks, fault = SOME[name]
    if name.startswith("no ") and os.geteuid() != 0:
        pytest.skip("needs root on Linux")
    require_resumed(experiment, faults.Start(ranks, "shared", fault))


def test_power_cuts_in_a_run_and_in_the_one_that_goes_on():
    if why := disk.possible():
        pytest.skip(why)
    places = ("row", 60), ("log, a column", 25)
    require_resumed("ef21 topk", *on_one_rank("cut power", *places, spare=disk.WITHOUT_JOURNAL))


def test_a_chain_of_kills():
    kills = on_one_rank("kill", ("row", 90), ("writing a whole file", 4))
    require_resumed("ef21 topk", *kills)


def test_a_host_that_sees_files_late():
    delays = dict(zip(faults.FILES, (0.0, 0.2, 0.0, 0.1), strict=True))
    require_resumed("diana qsgd", faults.without_locks(1, 0.3), delays=delays, rounds=2000)


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_there(place, monkeypatch, tmp_path):
    """A function that has another name now would let faults never happen."""
    monkeypatch.setattr(PLACES[place], lambda: "called")
    arm(Fault("raise", place, 2, mark=str(tmp_path / "mark")))
    function = pkgutil.resolve_name(PLACES[place])
    assert function() == "called"
    with pytest.raises(RuntimeError, match="one bad day"):
        function()
