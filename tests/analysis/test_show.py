"""The page of `mpisim show`."""

import re

import numpy as np
import pytest

from mpisim.analysis.show import show_text
from mpisim.core.errors import InputError


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


def test_bits_are_those_of_a_worker(make_log):
    text = show_text(make_log())
    # up: 320 * 50 + 4000 bits; down: 4000 * 50
    assert re.search(r"payload +20 kbit +200 kbit", text)
    assert re.search(r"framing +400 bit +400 bit", text)
    assert re.search(r"as the paper charges +16 kbit\n", text)


def test_time_by_phase_adds_up_and_is_sorted(make_log):
    text = show_text(make_log())
    shares = [float(s) for s in re.findall(r"([\d.]+)%", text)]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert shares == sorted(shares, reverse=True)
    assert re.search(r"other +0\.400 s +22\.2%", text)


def test_a_killed_run_says_so(make_log):
    text = show_text(make_log(attrs={"status": "running", "end": ""}))
    assert "running since 2020-01-01T00:00:00+00:00, or killed" in text


def test_a_log_without_rows_or_optional_columns(make_log):
    empty = {n: np.zeros(0) for n in ("round", "loss")}
    assert "no row yet" in show_text(make_log(columns=empty))
    text = show_text(make_log(drop=("paper_bits_up", "oracle_calls", "time_other")))
    assert "paper" not in text.replace("paper's", "") and "oracle" not in text


def test_missing_log(tmp_path):
    with pytest.raises(InputError, match="no such log"):
        show_text(tmp_path / "none.h5")
