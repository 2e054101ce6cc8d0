"""PermK paper, Figure 5: Figure 4 with lambda = 1e-4, under PL."""

from mpisim.analysis.papers.permk_fig4 import SCALES, claims, draw

__all__ = ["GRID", "SCALES", "claims", "draw"]
GRID = "permk-fig3"
