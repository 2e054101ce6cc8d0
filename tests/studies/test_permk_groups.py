"""The PermK paper's Appendix M, from real short runs."""

from mpisim.analysis.study import find
from mpisim.runs.log.reader import read
from run.permk import groups
from tests.helpers import run_tables


def test_two_groups(tmp_path, any_grid):
    """Appendix M in small: n = 8, d = 16, with and without groups, at two steps each."""
    for number in (1, 2):
        for multiple in (1.0, 2.0):
            tables = {
                "problem": {"name": "quadratic", "workers": 8, "dimension": 16, "lambda": 1e-3}
                | {"factors": [0.1, 1.9]},
                "method": {"name": "marina", "stepsize": {"theory": multiple}},
                "compressor": {"name": "permk", "groups": number},
                "run": {"rounds": 150},
            }
            run_tables(tables, tmp_path / f"{number}-{multiple}.h5")
    logs = [read(path) for path in sorted(tmp_path.glob("*.h5"))]
    result = groups.choose(logs)
    assert set(result[groups.THEORY]) == set(result[groups.BEST]) == {1, 2}
    one, two = (result[groups.THEORY][k][1][0].attrs["stepsize"] for k in (1, 2))
    assert two > 1.5 * one  # Theorem 10: L_± does not count
    [claim] = groups.claims(logs)
    assert [item.where for item in claim.evidence] == [groups.THEORY, groups.BEST]
    assert claim.evidence[0].verdict == claim.verdict == "holds"
    assert [item.counts for item in claim.evidence] == [True, False]
    figure = find("permk-groups")[1].draw(logs)
    assert [len(panel.get_lines()) for panel in figure.axes] == [2, 2]
