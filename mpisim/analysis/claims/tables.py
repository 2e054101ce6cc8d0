"""Claims as text, for a terminal and in Markdown, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis import formatting
from mpisim.analysis.claims.judging import by_chance, comparisons, firmness, sensitivity
from mpisim.analysis.claims.verdicts import MANY, Claim, Evidence, Verdict, counts
from mpisim.core.errors import InputError
from mpisim.core.files import read_json, write_json

SUFFIX = ".claims.json"
KEYS = tuple(field.name for field in dataclasses.fields(Claim))
WIDTH = max(map(len, Verdict))
PROJECT = "this project's own claim"
Studies = Mapping[str, Mapping[str, Sequence[Claim]]]  # {study: {figure: its claims}}


def table(name: str, claims: Sequence[Claim]) -> str:
    """The claims with all of their evidence, below what the paper says, where, and the counts."""
    lines = [f"{name}: {counts(claims)}"]
    for source, quote in dict.fromkeys((claim.source, claim.quote) for claim in claims):
        lines.append(f'\n{source}: "{quote}"' if quote else f"\n{source} ({PROJECT})")
        for claim in claims:
            if (claim.source, claim.quote) != (source, quote):
                continue
            lines.append(f"  {claim.verdict:<{WIDTH}}  {claim.claim}: {claim.measured}")
            several = claim.evidence if len(claim.evidence) > 1 else []
            for one in several:
                where = one.where if one.counts else f"{one.where} (aside)"
                lines.append(f"  {'':{WIDTH}}  - {where}: {one.verdict}: {one.measured}")
    return "\n".join(lines)


def overview(studies: Studies) -> str:
    """The counts study by study, and a line for each claim."""
    blocks = []
    for study, figures in studies.items():
        lines = [f"{study}: {counts([c for claims in figures.values() for c in claims])}"]
        width = max(map(len, figures))
        lines += [
            f"  {claim.verdict:<{WIDTH}}  {figure:<{width}}  {claim.claim}: {claim.measured}"
            for figure, claims in figures.items()
            for claim in claims
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def summary(studies: Studies) -> str:
    """A table in Markdown of how many claims of each study have which verdict.

    A study's own claims have a row of their own. Firm verdicts are those that no alternative moves.
    """
    rows = []
    for study, figures in studies.items():
        claims = [claim for several in figures.values() for claim in several]
        for name, mine in ((study, False), (f"{study}: this project's own", True)):
            verdicts = [claim.verdict for claim in claims if claim.of_project == mine]
            if verdicts or not mine:
                firm = firmness([claim for claim in claims if claim.of_project == mine])
                rows.append([name, *(str(verdicts.count(v)) for v in Verdict), firm])
    return formatting.markdown(["study", *(MANY[verdict] for verdict in Verdict), "firm"], rows)


def sensitivities(studies: Studies) -> str:
    """For each study how many verdicts each alternative to the rules moves, and how many open ones
    it would decide."""
    blocks = []
    for study, figures in studies.items():
        claims = [claim for several in figures.values() for claim in several]
        open_ = sum(claim.verdict is Verdict.UNDECIDED for claim in claims)
        lines = [f"{study}: {counts(claims)}", f"  {chance(claims)}"]
        lines += [
            f"  {name:<25} moves {moved} of {len(claims) - open_} decided, decides {new} of {open_}"
            for name, (moved, new) in sensitivity(claims).items()
        ]
        blocks.append("\n".join([*lines, f"  {firmness(claims) or 'no comparison'}"]))
    return "\n\n".join(blocks)


def chance(claims: Sequence[Claim]) -> str:
    """``40 comparisons, of which chance alone would decide 2``."""
    several = comparisons(claims)
    decided = f"of which chance alone would decide {by_chance(several):.2g}"
    return f"{len(several)} comparisons, {decided}"


def markdown(studies: Studies) -> str:
    """The `summary`, and a table of each study's claims, for documents."""
    blocks = [summary(studies)]
    for study, figures in studies.items():
        rows = [[figure, *_cells(claim)] for figure, claims in figures.items() for claim in claims]
        head = ["figure", "the paper", "claim", "verdict", "measured"]
        blocks.append(f"## {study}\n\n{formatting.markdown(head, rows)}")
    return "\n\n".join(blocks)


def _cells(claim: Claim) -> list[str]:
    paper = f'"{claim.quote}" ({claim.source})' if claim.quote else f"{claim.source} ({PROJECT})"
    return list(map(formatting.escaped, (paper, claim.claim, claim.verdict, claim.measured)))


def write(path: Path, claims: Sequence[Claim]) -> Path:
    """Write the claims as a JSON list; returns ``path``. `OutputError` where that fails."""
    write_json(path, [dataclasses.asdict(claim) for claim in claims])
    return path


def read(path: Path) -> list[Claim]:
    """Read the claims that `write` wrote; `InputError` for any other file."""
    keys = f"not a list of claims with the keys {', '.join(KEYS)}; draw the figure again"
    return read_json(path, lambda claims: [_claim(**claim) for claim in claims], keys)


def read_folder(
    folder: Path, known: Collection[str] = ()
) -> tuple[dict[str, dict[str, list[Claim]]], list[InputError]]:
    """{study: {figure: claims}} of the files STUDY-FIGURE.claims.json, and what cannot be read.

    Both names may have a "-"; where the study is not among the ``known`` ones, the last "-" counts.
    """
    studies: dict[str, dict[str, list[Claim]]] = {}
    refused = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        fitting = [study for study in known if name.startswith(f"{study}-")]
        study = max(fitting, key=len, default=name.rpartition("-")[0])
        try:
            studies.setdefault(study, {})[name.removeprefix(f"{study}-")] = read(path)
        except InputError as error:
            refused.append(error)
    return studies, refused


def _claim(*, verdict: str, evidence: list[dict[str, Any]], **texts: str) -> Claim:
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError
    several = [Evidence(**one | {"verdict": Verdict(one.get("verdict", ""))}) for one in evidence]
    return Claim(verdict=Verdict(verdict), evidence=several, **texts)
