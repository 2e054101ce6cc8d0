"""CD-Adam, Figure 4 (Appendix E.1): Figure 2 with Top-1 instead of the scaled sign."""

from mpisim.analysis.papers.cdadam_fig2 import SCALES, claims, draw

__all__ = ["SCALES", "claims", "draw"]
