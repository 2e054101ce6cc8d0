"""Claims of papers, judged from logs, written as JSON and printed as tables."""

from mpisim.analysis.claims.compare import (
    Later,
    at_one_target,
    compare,
    judge,
    needed,
    seed,
    told_without,
    value_at,
)
from mpisim.analysis.claims.file import SUFFIX, read, write
from mpisim.analysis.claims.reach import DECADES, TENTHS, Reach, Targets
from mpisim.analysis.claims.statement import (
    Rule,
    every,
    growing,
    larger_half,
    most,
    on_seconds,
    state,
    undecided,
)
from mpisim.analysis.claims.table import counts, markdown, number, overview, table
from mpisim.analysis.claims.verdict import Claim, Evidence, Verdict, decided

__all__ = ["DECADES", "SUFFIX", "TENTHS"]
__all__ += ["Claim", "Evidence", "Later", "Reach", "Rule", "Targets", "Verdict"]
__all__ += [
    "at_one_target",
    "compare",
    "counts",
    "decided",
    "every",
    "growing",
    "judge",
    "larger_half",
]
__all__ += ["markdown", "most", "needed", "number", "on_seconds", "overview", "read", "seed"]
__all__ += ["state", "table", "told_without", "undecided", "value_at", "write"]
