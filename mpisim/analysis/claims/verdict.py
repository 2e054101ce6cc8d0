"""A claim, its evidence, and the four verdicts."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What the evidence says of a claim.

    A tie is a difference within the spread over seeds, or below 3%. A claim is not decided where a
    run ended too early, data is absent, or seconds mean nothing.
    """

    HOLDS = "holds"
    FAILS = "does not hold"
    TIE = "tie"
    UNDECIDED = "not decided"


def decided(holds: bool) -> Verdict:
    """``HOLDS`` or ``FAILS``, for what is a matter of yes or no."""
    return Verdict.HOLDS if holds else Verdict.FAILS


@dataclasses.dataclass(frozen=True)
class Evidence:
    """One measurement that bears on a claim: on a data set, say.

    Attributes
    ----------
    where : str
        What was measured on: ``mushrooms, K = 1``.
    measured : str
    verdict : Verdict
        Of this measurement alone.
    numbers : dict
        For programs: ratio and sign of every seed, costs, targets.
    counts : bool
        False for evidence that is reported, but outside of what the paper speaks of.
    """

    where: str
    measured: str
    verdict: Verdict
    numbers: dict[str, Any] = dataclasses.field(default_factory=dict)
    counts: bool = True


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of a paper, and what the logs say of it.

    Attributes
    ----------
    claim : str
        What is checked, in a few words.
    quote : str
        What the paper says, word for word; empty where the claim is not a paper's.
    source : str
        Where it says so.
    measured : str
    verdict : Verdict
    evidence : list of Evidence
    """

    claim: str
    quote: str
    source: str
    measured: str
    verdict: Verdict
    evidence: list[Evidence] = dataclasses.field(default_factory=list)
