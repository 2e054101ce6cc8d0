"""Figure 1 at the iterate that the theorems return, drawn uniformly.

    mpisim sweep run/marina/fig1.toml --set 'run.columns=["uniform"]' --out logs/marina-fig1-uniform
    python -m run.marina.measure_uniform_iterate [FOLDER]

FOLDER is logs/marina-fig1-uniform if not given. The verdicts of the figure's rows at x^, and what
share of the theorems' bound E |grad f(x^)|^2 is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.claims import state
from mpisim.analysis.curves import UNIFORM
from mpisim.analysis.run_groups import one_setting
from mpisim.analysis.study import complete_logs
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log
from run.marina.fig1 import COSTS, ROWS, Found, pairs, runs

FOLDER = Path("logs/marina-fig1-uniform")


def verdicts(found: Found) -> Iterator[str]:
    """The claims of the figure's rows, judged by |grad f(x^)|^2 at its expectation."""
    for row in ROWS:
        less, more, cost = row
        text = f"{labels.method(less)} needs fewer {COSTS[cost]} than {labels.method(more)}"
        one = state(text, "", "", list(pairs(found, row, UNIFORM)))
        yield f"{one.verdict}: {one.claim}: {one.measured}"


def shares(found: Found) -> Iterator[str]:
    """The largest `share_of_bound` over the rounds, for each data set, method and K."""
    for (data, k, method), logs in found.items():
        if "marina" in method:
            name = f"{data}, {labels.method(method)}, K = {k}"
            yield f"{name:34} {share_of_bound(logs).max():.3g}"


def share_of_bound(logs: list[Log]) -> np.ndarray:
    """E |grad f(x^)|^2 after K = k iterations over 2 f(x^0) / (gamma K), 0 for k = 0; (rows,).

    The denominator bounds it by Theorems 2.1 and 3.1, with f* >= 0 left out. The mean over the
    logs, which differ in the seed, is for E.
    """
    rows = min(log.rows for log in logs)
    mean = np.mean([UNIFORM.values(log)[:rows] for log in one_setting(logs)], axis=0)
    bound = 2 * logs[0].column("loss")[0] / float(logs[0].attrs["stepsize"])
    return mean * logs[0].column("round")[:rows] / bound


def main(arguments: list[str]) -> int:
    """Print both; 2 without logs of every round."""
    try:
        found = runs(complete_logs(Path(arguments[0]) if arguments else FOLDER)[0])
        lines = list(verdicts(found)), list(shares(found))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print("at the uniformly drawn iterate x^", *lines[0], sep="\n  ")
    print("\nE |grad f(x^)|^2 over its bound, at most", *lines[1], sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
