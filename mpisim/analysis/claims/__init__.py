"""Claims of papers, judged from logs, written as JSON and printed as tables."""

from mpisim.analysis.claims.compare import (
    CLEAR,
    Later,
    at_one_target,
    compare,
    judge,
    needed,
    pairs,
    seed,
    told_without,
    value_at,
)
from mpisim.analysis.claims.file import SUFFIX, read, read_folder, write
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
from mpisim.analysis.claims.table import (
    Studies,
    counts,
    markdown,
    number,
    overview,
    summary,
    table,
)
from mpisim.analysis.claims.verdict import Claim, Evidence, Verdict, decided

__all__ = ["CLEAR", "DECADES", "SUFFIX", "TENTHS"]
__all__ += ["Claim", "Evidence", "Later", "Reach", "Rule", "Studies", "Targets", "Verdict"]
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
__all__ += [
    "markdown",
    "most",
    "needed",
    "number",
    "on_seconds",
    "overview",
    "pairs",
    "read",
    "read_folder",
    "seed",
]
__all__ += ["state", "summary", "table", "told_without", "undecided", "value_at", "write"]
