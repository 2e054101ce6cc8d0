"""PermK paper, Figure 7: Figure 6 with lambda = 1e-4, under PL."""

from mpisim.analysis.papers.permk_fig6 import SCALES, claims, draw

__all__ = ["GRID", "SCALES", "claims", "draw"]
GRID = "permk-fig3"
