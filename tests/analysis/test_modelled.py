"""`mpisim plot --network`: seconds by the model, from a log."""

import numpy as np
import pytest

from mpisim.analysis.api import plot
from mpisim.analysis.link_model import ModelledSeconds, parse, traffic
from mpisim.cli import main
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read

EXTRA = 8 * (22 + 66)  # bits of a message that fits a packet


def test_seconds_of_a_log(make_log):
    """The hand-made log: 5 workers, round 0 holds 4000 bits each, then 320 + 8 up, 4000 + 8 down;
    phase i of 8 takes i ms a round."""
    log = read(make_log())
    found = ModelledSeconds("seconds", True, links=parse("1mbit,2ms")).values(log)
    start = (4000 + EXTRA) / 1e6
    own = 1e-3 * sum(range(1, 9))
    a_round = own + 2 * 2e-3 + ((320 + 8) + (4000 + 8) + 2 * EXTRA) / 1e6
    # the hand-made bits_up_max leaves out what was sent ahead of round 0
    assert found == pytest.approx(a_round * np.arange(51), rel=1e-9)
    shared = ModelledSeconds("seconds", True, links=parse("1mbit,shared")).values(log)
    a_round = own + 5 * (320 + 8 + 4000 + 8 + 2 * EXTRA) / 1e6
    assert shared == pytest.approx(5 * start + a_round * np.arange(51), rel=1e-9)


def test_ranks_as_the_run_dealt_them(make_log):
    log = read(make_log())  # 5 workers on 2 ranks: 2 at the server, 3 away
    found = ModelledSeconds("seconds", True, links=parse("1mbit,ranks")).values(log)
    own = 1e-3 * sum(range(1, 9))
    up, down = 3 * (320 + 8), 4000 + 8
    assert np.diff(found) == pytest.approx(own + (up + down + 2 * EXTRA) / 1e6, rel=1e-9)
    with pytest.raises(InputError, match="ranks = 9 for 5 workers"):
        traffic(read(make_log(attrs={"ranks": 9})))


def test_plot_draws_and_names_it(make_log, tmp_path, capsys):
    output = tmp_path / "f.png"
    assert main(["plot", str(make_log()), "--network", "100mbit,1ms", "-o", str(output)]) == 0
    assert output.is_file()
    log = read(make_log())
    axis = ModelledSeconds("seconds", True, links=parse("100mbit,1ms"))
    assert axis.label(log) == "modelled seconds, 100mbit,1ms"
    flags = ["--network", "100mb", "-o", str(output)]
    assert main(["plot", str(make_log()), *flags]) == 2
    assert "it must be RATE" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"--x: 'bits_up' .* seconds, with --network"):
        plot([make_log()], x="bits_up", output=output, network=parse("1ms"))
