"""PermK paper, Figure 3: Figure 1 with lambda = 1e-4, under PL."""

from mpisim.analysis.papers.permk_fig1 import SCALES, claims, draw

__all__ = ["SCALES", "claims", "draw"]
