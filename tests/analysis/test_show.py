"""The page of `mpisim show`, and figures of one's own."""

import re
from time import monotonic

import numpy as np
import pytest

from mpisim.analysis.show import show_text
from mpisim.runs.log.reader import read
from tests.helpers import run_tables, table


def test_says_what_was_run_and_how_it_ended(make_log):
    text = show_text(make_log(title="a title"))
    for part in (
        "a title",
        "mpisim run e.toml",
        "non-convex loss on mushrooms, d = 113",
        "MARINA",
        "0.125, MARINA, Theorem 2.1",
        "RandK (K = 10)",
        "5 on 2 ranks, shared layout",
        "done; started 2020-01-01T00:00:00+00:00, took 1 min 05 s",
        "50 of 50 (51 rows logged)",
        "82824 per worker",
    ):
        assert part in text


def test_time_by_phase_adds_up_and_is_sorted(make_log):
    text = show_text(make_log())
    shares = [float(s) for s in re.findall(r"([\d.]+)%", text)]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert shares == sorted(shares, reverse=True)
    assert re.search(r"other +0\.400 s +22\.2%", text)


DURATIONS = {  # of a run whose phases take 1.8 s
    "seconds_elapsed": 64.5,
    "seconds_setup": 2.25,
    "seconds_rehearsal": 0.25,
    "seconds_evaluation": 59.875,
    "seconds_waiting": 0.5,
    "seconds_before": 0.0,
}


def elapsed(text):
    """The lines of the elapsed time: {name: seconds}."""
    block = text[text.index("\nelapsed") :]
    return {name: float(s) for name, s in re.findall(r"^  ([a-z-]+) +(-?[\d.]+) s ", block, re.M)}


def test_what_elapsed_is_the_sum_of_its_parts(make_log):
    text = show_text(make_log(attrs=DURATIONS))
    parts = {"set-up": 2.25, "rehearsal": 0.25, "method": 1.8, "evaluation": 59.875, "rest": 0.325}
    assert elapsed(text) == pytest.approx(parts)
    assert "elapsed                     1 min 04 s" in text and sum(parts.values()) == 64.5
    assert "waiting, 0.500 s of rank 0 for slower ranks, is not added" in text
    assert "resumed" not in text and "more ranks than cores" not in text


def test_the_parts_of_a_real_run_add_up(tmp_path):
    """On one rank, whose clock is the slowest path, to the last digit; also where it resumes."""
    log = tmp_path / "x.h5"
    tables = table({"name": "marina", "stepsize": 0.1, "p": 0.5}, {"name": "randk", "k": 5})
    tables["compressor"] = {"name": "smooth", "inner": tables["compressor"]}  # sends before round 0
    tables["problem"] |= {"name": "logistic", "l2": 1e-3}
    for resumed in (False, True):
        start = monotonic()
        tables["run"]["rounds"] = 30 if resumed else 20
        run_tables(tables, log, resume=resumed)
        wall, attrs = monotonic() - start, read(log).attrs
        parts = elapsed(show_text(log))
        assert parts["rest"] == 0 and min(parts.values()) >= 0
        assert sum(parts.values()) == pytest.approx(attrs["seconds_elapsed"], abs=3e-3)
        assert 0 < attrs["seconds_elapsed"] < wall
        method = read(log).column("seconds")
        before = method[read(log).columns["round"] == 20][0] if resumed else 0.0
        assert attrs["seconds_before"] == pytest.approx(before, abs=1e-9)
        assert ("resumed" in attrs) == resumed


def test_a_log_without_rows_or_optional_columns(make_log):
    empty = {n: np.zeros(0) for n in ("round", "loss")}
    assert "no row yet" in show_text(make_log(columns=empty))
    text = show_text(make_log(drop=("paper_bits_up", "oracle_calls", "time_other")))
    assert "paper" not in text.replace("paper's", "") and "oracle" not in text
