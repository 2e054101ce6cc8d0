"""Claims as text: counts, tables for a terminal, and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mpisim.analysis.claims.verdict import Claim, Evidence, Verdict

WIDTH = max(map(len, Verdict))
ONE = {Verdict.HOLDS: "holds", Verdict.FAILS: "does not hold", Verdict.TIE: "tie"}
MANY = {Verdict.HOLDS: "hold", Verdict.FAILS: "do not hold", Verdict.TIE: "ties"}


def counts(claims: Sequence[Claim]) -> str:
    """``3 hold, 1 does not hold, 0 ties, 2 not decided``."""
    parts = []
    for verdict in Verdict:
        n = sum(claim.verdict is verdict for claim in claims)
        parts.append(f"{n} {(ONE if n == 1 else MANY).get(verdict, verdict)}")
    return ", ".join(parts)


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


def overview(figures: Mapping[str, Sequence[Claim]]) -> str:
    """The counts study by study, and a line for each claim. Figures are called STUDY-FIGURE."""
    blocks = []
    for study, own in by_study(figures).items():
        lines = [f"{study}: {counts([c for claims in own.values() for c in claims])}"]
        width = max(map(len, own))
        lines += [
            f"  {claim.verdict:<{WIDTH}}  {figure:<{width}}  {claim.claim}: {claim.measured}"
            for figure, claims in own.items()
            for claim in claims
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def markdown(figures: Mapping[str, Sequence[Claim]]) -> str:
    """A table of the counts, and one of each study's claims, for documents."""
    heads = ["study", *(MANY.get(verdict, verdict) for verdict in Verdict)]
    studies = by_study(figures)
    summary = [_row(heads), _row(["---"] * len(heads))]
    blocks = []
    for study, own in studies.items():
        claims = [claim for found in own.values() for claim in found]
        numbers = [str(sum(claim.verdict is verdict for claim in claims)) for verdict in Verdict]
        summary.append(_row([study, *numbers]))
        lines = [f"## {study}\n", _row(["figure", "the paper", "claim", "verdict", "measured"])]
        lines.append(_row(["---"] * 5))
        for figure, found in own.items():
            for c in found:
                paper = f'"{c.quote}" ({c.source})' if c.quote else c.source
                lines.append(_row([figure, paper, c.claim, c.verdict, c.measured]))
        blocks.append("\n".join(lines))
    return "\n\n".join(["\n".join(summary), *blocks])


def by_study(
    figures: Mapping[str, Sequence[Claim]],
) -> dict[str, dict[str, Sequence[Claim]]]:
    """{study: {figure: its claims}}."""
    found: dict[str, dict[str, Sequence[Claim]]] = {}
    for name, claims in figures.items():
        study, _, figure = name.rpartition("-")
        found.setdefault(study, {})[figure] = claims
    return found


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def number(value: float) -> str:
    """A number with three digits: ``0.98``, ``103``, ``1.28M``."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
