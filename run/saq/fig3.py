"""Figure 3 and Appendix B.5: do bits grow with |h^-1|, as Assumption 3 has it?

measure_fig3.py encodes the messages of 1,000 random step vectors; the file that it writes is what
is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, Evidence, decided, state
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import quotes
from mpisim.core.errors import InputError
from mpisim.runs.log.untrusted import DAMAGE, run_isolated

from .schemes import CODECS

SOURCE = "SAQ, Appendix B.5 and Figure 3 (Assumption 3)"
QUOTE = quotes(__file__)["correlated"]
LAMBDAS, DENSITIES = (1, 10, 100), (0.25, 0.5, 0.75, 1.0)
FILE = "bits.h5"
# "none" is no code: norm, signs and empirical entropy, without what tells the frequencies.
CODES = CODECS | {"none": "empirical entropy"}
DASHES: dict[str, Any] = dict(
    zip(CODES, ("-", (0, (1, 1.2)), (0, (4, 1.5)), (0, (5, 1.5, 1, 1.5))), strict=True)
)
LINEAR, LOGARITHMIC = Axis("bits", log=False), Axis("bits", log=True)
NORM = r"$\|h^{-1}\|$"
BINS = 20
SURE = 1e-3  # p-value of a rank correlation that is there
ROUNDED_UP = 2  # the logarithms of E.1 are whole bits in a message


class Measured(NamedTuple):
    """|h^-1|, shape (1000,), and bits {code: (lambdas, densities, 1000)}, means over x.

    support : the same shape, 31 + log d + log C(d, n0) + d - n0 of Appendix E.1
    """

    inverse_norm: np.ndarray
    bits: dict[str, np.ndarray]
    support: np.ndarray
    vectors: int


def read(folder: Path) -> Measured:
    """What measure_fig3.py measured; `InputError` where it is not there."""
    path = folder / FILE
    try:
        return run_isolated(path, lambda: _measured(path))
    except DAMAGE:
        hint = "`mpisim study run/saq fig3` measures it"
        raise InputError(f"{path}: cannot be read; {hint}") from None


def _measured(path: Path) -> Measured:
    with h5py.File(path, "r", locking=False) as file:
        norm, support = file["inverse_norm"][:], file["support"][:]
        bits = {code: file[f"bits/{code}"][:] for code in CODES}
        return Measured(norm, bits, support, int(file.attrs["vectors"]))


def draw(measured: Measured) -> Any:
    """A column for each lambda; Elias' bits of every h, and medians in all codes."""
    figure, grid = panels.grid(2, len(LAMBDAS), (3.4, 2.6))
    dots = {"markersize": 2.5, "markeredgewidth": 0, "alpha": 0.5, "rasterized": True}
    for a, mean in enumerate(LAMBDAS):
        grid[0, a].set_title(f"Poisson, λ = {mean}")
        for values, colour in zip(measured.bits["elias"][a], style.COLOURS, strict=False):
            grid[0, a].plot(measured.inverse_norm, values, ".", color=colour, **dots)
        for b in (0, len(DENSITIES) - 1):
            _medians(grid[1, a], measured, (a, b), style.COLOURS[b])
        panels.dress(grid[0, a], LOGARITHMIC, LINEAR, NORM)
        panels.dress(grid[1, a], LOGARITHMIC, LOGARITHMIC, NORM)
    grid[0, 0].set_ylabel("bits, Elias omega")
    grid[1, 0].set_ylabel("bits, medians")
    densities = (f"density {density}" for density in DENSITIES)
    looks = panels.colours_of(zip(densities, style.COLOURS, strict=False))
    looks += panels.dashes_of({CODES[code]: dash for code, dash in DASHES.items()})
    panels.legend(figure, looks, "SAQ, Figure 3: bits of a message, d = 50", len(DENSITIES))
    return figure


def _medians(panel: Any, measured: Measured, at: tuple[int, int], colour: str) -> None:
    """Of bins with equally many h each."""
    bins = np.array_split(np.argsort(measured.inverse_norm), BINS)
    x = [np.median(measured.inverse_norm[members]) for members in bins]
    for code, dash in DASHES.items():
        y = [np.median(measured.bits[code][at][members]) for members in bins]
        panel.plot(x, y, color=colour, linestyle=dash)


def claims(measured: Measured) -> Iterator[Claim]:
    """B.5: bits and |h^-1| are positively correlated; E.1: the bound of its own code."""
    correlated = [
        _correlated(measured, a, b) for a in range(len(LAMBDAS)) for b in range(len(DENSITIES))
    ]
    yield state("bits (Elias) grow with |h^-1|", QUOTE, SOURCE, correlated)
    text = "E.1's code takes at most 31 + log d + log C(d, n0) + d - n0 + |h^-1|"
    bounded = [_bounded(measured, a) for a in range(len(LAMBDAS))]
    yield state(text, "", "SAQ, Appendix E.1", bounded)


def _correlated(measured: Measured, a: int, b: int) -> Evidence:
    """Spearman's rank correlations of bits and |h^-1|; Elias' is judged."""
    from scipy.stats import spearmanr  # a second to import

    correlations = {c: spearmanr(measured.inverse_norm, v[a, b]) for c, v in measured.bits.items()}
    ranks = {code: float(result.statistic) for code, result in correlations.items()}
    elias = correlations["elias"]
    listed = ", ".join(f"{CODES[code]} {rank:.2f}" for code, rank in ranks.items())
    more = float(np.median(measured.bits["elias"][a, b] / measured.bits["none"][a, b])) - 1
    text = f"Spearman's rank correlation: {listed}; Elias takes {more:.0%} more than the empirical"
    numbers = {"spearman": ranks, "p_value": float(elias.pvalue), "elias_above_entropy": more}
    grow = decided(elias.statistic > 0 and elias.pvalue < SURE)
    return Evidence(f"λ = {LAMBDAS[a]}, density {DENSITIES[b]}", f"{text} entropy", grow, numbers)


def _bounded(measured: Measured, a: int) -> Evidence:
    bound = measured.support + measured.inverse_norm + ROUNDED_UP
    share = float((measured.bits["e1"][a] / bound[a]).max())
    listed = f"{share:.3f} of it at most, over all h and densities, means over {measured.vectors}"
    numbers = {"largest_share": share}
    return Evidence(f"λ = {LAMBDAS[a]}", f"{listed} vectors", decided(share <= 1), numbers)
