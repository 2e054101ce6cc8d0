"""What ``make setup`` compiles: every method and compressor must really run there."""

import pytest

from tools import warm_up


def test_every_run_of_the_warm_up_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert warm_up.main() == 0
    assert capsys.readouterr().err == ""
