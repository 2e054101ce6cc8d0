"""What a compressor, a problem and a method must do: for a plugin's tests, and `mpisim check`.

The package's tests run the same checks on what it has. They are above the rooms whose parts they
check, because a part must also keep its promises in whole runs.

    from mpisim.testing import assert_all, compressor_checks

    def test_mine():
        assert_all(compressor_checks(Mine(k=3)))

`check` tries all that a plugin registers. `compressor_checks` and `problem_checks` are the checks
of one object. Each is a function of its own in `mpisim.testing.compressor` and
`mpisim.testing.problem`. `mpisim.testing.moments` compares constants with draws, and
`mpisim.testing.runs` the logs of runs in one and in two parts.
"""

from mpisim.testing.compressor import DOUBLE, SINGLE, compressor_checks
from mpisim.testing.plugins import check
from mpisim.testing.problem import problem_checks
from mpisim.testing.runs import Broken, Check, NotChecked, Outcome, assert_all, differences

__all__ = ["DOUBLE", "SINGLE", "Broken", "Check", "NotChecked", "Outcome"]
__all__ += ["assert_all", "check", "compressor_checks", "differences", "problem_checks"]
