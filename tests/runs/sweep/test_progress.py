"""What a sweep prints: its points, how many are done, and the time that is left."""

import io

import pytest

from mpisim.runs.sweep.points import ALONE, Outcome, Point, read_summary
from mpisim.runs.sweep.progress import Board, Pace, PointLines
from mpisim.runs.sweep.queue import new_claims


def points(*sizes):
    return [Point(f"p{i}", f"{i}.h5", {}, "", number=i, size=s) for i, s in enumerate(sizes)]


def test_points_take_as_long_as_those_of_their_size():
    """Size 100 in 10 s, size 1 in 5 s: not 1/100 of it. Two at a time, so half of what is left."""
    pace = Pace(points(100, 1, 1, 100, 1), 0.0)
    assert pace.left(1.0) == ""
    pace.ran(0, 10.0)
    assert pace.left(5.0) == ", about 5.2 s left"  # 100 took 5 s, 103 are left
    pace.ran(1, 4.0)
    pace.ran(2, 6.0)
    assert pace.left(10.0) == ", about 7.5 s left"  # runs of 10 and of 5 s


@pytest.fixture
def follow(tmp_path):
    """A board of points with the sizes given, read at the times given; its claims and stream."""
    with new_claims(tmp_path) as claims:

        def make(several, clock):
            times, stream = iter(clock), io.StringIO()
            lines, left = PointLines(several), [p for p in several if not p.status]
            board = Board(
                *(tmp_path, left, claims, lines, ALONE, True, stream), clock=lambda: next(times)
            )
            return board, claims, stream

        yield make


def test_one_line_of_progress(tmp_path, capsys, follow):
    several = points(8, 1, 1, 2, 0)
    several[4].end("skipped", "no")
    board, claims, stream = follow(several, [100.0, 101.0, 111.0])
    claims.take(0)
    claims.take(1)
    board.update()
    assert stream.getvalue() == "" == capsys.readouterr().out
    claims.end(0, Outcome("diverged", "", 4.0))
    claims.take(2)
    board.update()
    assert capsys.readouterr().out == "[1/5] 0.h5: diverged in 4.0 s\n"
    # 8 of 12 in 11 s
    line = "1 of 5 points done (1 diverged), 2 running, 1 failed, about 5.5 s left\n"
    assert stream.getvalue() == line
    assert [p.status for p in read_summary(tmp_path)] == ["diverged", "", "", "", "skipped"]


def test_the_time_is_announced(capsys, follow):
    """From the rehearsals of the runs that begin: 100 and 300 s for 4 of 12, two at a time."""
    board, claims, stream = follow(points(1, 3, 6, 2), [0.0, 5.0, 9.0, 11.0, 75.0])
    for number in (0, 1):
        claims.take(number)
    claims.expect(0, 100.0)
    board.update()  # the other one has not rehearsed
    assert capsys.readouterr().out == ""
    claims.expect(1, 300.0)
    board.update()
    assert capsys.readouterr().out == "about 10 min 00 s for 4 runs, 2 at a time\n"
    board.update()
    board.update()
    assert capsys.readouterr().out == ""
    first, second = stream.getvalue().splitlines()
    assert first.endswith("2 running, 0 failed, about 9 min 49 s left")
    assert second.endswith("about 8 min 45 s left")
