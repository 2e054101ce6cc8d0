"""Claims as text: counts, tables for a terminal, and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mpisim.analysis import formatting as md
from mpisim.analysis.claims.verdict import Claim, Evidence, Verdict

WIDTH = max(map(len, Verdict))
ONE = {Verdict.HOLDS: "holds", Verdict.FAILS: "does not hold", Verdict.TIE: "tie"}
MANY = {Verdict.HOLDS: "hold", Verdict.FAILS: "do not hold", Verdict.TIE: "ties"}

Studies = Mapping[str, Mapping[str, Sequence[Claim]]]  # {study: {figure: its claims}}


def counts(claims: Sequence[Claim]) -> str:
    """``3 hold, 1 does not hold, 2 not decided``, or ``no claims``."""
    numbers = [(verdict, sum(c.verdict is verdict for c in claims)) for verdict in Verdict]
    parts = [
        f"{n} {(ONE if n == 1 else MANY).get(verdict, verdict)}" for verdict, n in numbers if n
    ]
    return ", ".join(parts) or "no claims"


def table(name: str, claims: Sequence[Claim]) -> str:
    """The claims with all of their evidence, below what the paper says, where, and the counts."""
    lines = [f"{name}: {counts(claims)}"]
    for said in dict.fromkeys((claim.source, claim.quote) for claim in claims):
        source, quote = said
        lines.append(f'\n{source}: "{quote}"' if quote else f"\n{source}")
        own = [claim for claim in claims if (claim.source, claim.quote) == said]
        for claim in own:
            lines.append(f"  {claim.verdict:<{WIDTH}}  {claim.claim}: {claim.measured}")
            several = claim.evidence if len(claim.evidence) > 1 else []
            lines += [f"  {'':{WIDTH}}  - {_line(one)}" for one in several]
    return "\n".join(lines)


def _line(one: Evidence) -> str:
    aside = "" if one.counts else " (aside)"
    return f"{one.where}{aside}: {one.verdict}: {one.measured}"


def overview(studies: Studies) -> str:
    """The counts study by study, and a line for each claim."""
    blocks = []
    for study, own in studies.items():
        lines = [f"{study}: {counts([c for claims in own.values() for c in claims])}"]
        width = max(map(len, own))
        lines += [
            f"  {claim.verdict:<{WIDTH}}  {figure:<{width}}  {claim.claim}: {claim.measured}"
            for figure, claims in own.items()
            for claim in claims
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def summary(studies: Studies) -> str:
    """A table in Markdown of how many claims of each study have which verdict."""
    rows = []
    for study, own in studies.items():
        verdicts = [claim.verdict for claims in own.values() for claim in claims]
        rows.append([study, *(str(verdicts.count(verdict)) for verdict in Verdict)])
    return md.markdown(["study", *(MANY.get(verdict, verdict) for verdict in Verdict)], rows)


def markdown(studies: Studies) -> str:
    """The `summary`, and a table of each study's claims, for documents."""
    blocks = [summary(studies)]
    for study, own in studies.items():
        rows = [[figure, *_cells(claim)] for figure, found in own.items() for claim in found]
        head = ["figure", "the paper", "claim", "verdict", "measured"]
        blocks.append(f"## {study}\n\n{md.markdown(head, rows)}")
    return "\n\n".join(blocks)


def _cells(claim: Claim) -> list[str]:
    paper = f'"{claim.quote}" ({claim.source})' if claim.quote else claim.source
    return list(map(md.escaped, (paper, claim.claim, claim.verdict, claim.measured)))


def number(value: float) -> str:
    """A number with three digits: ``0.98``, ``103``, ``1.28M``, ``1.9e+13``."""
    if 1e6 <= abs(value) < 1e9:
        return f"{value / 1e6:.3g}M"
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
