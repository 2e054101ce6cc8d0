"""Claims as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis.claims.verdict import Claim, Evidence, Verdict
from mpisim.core.errors import InputError
from mpisim.core.files import write_json

SUFFIX = ".claims.json"
KEYS = tuple(field.name for field in dataclasses.fields(Claim))


def write(path: Path, claims: Sequence[Claim]) -> Path:
    """Write the claims as a JSON list; returns ``path``. `OutputError` where that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, [dataclasses.asdict(claim) for claim in claims])
    return path


def read(path: Path) -> list[Claim]:
    """Read the claims that `write` wrote; `InputError` for any other file."""
    try:
        return [_claim(**claim) for claim in json.loads(path.read_text(encoding="utf-8"))]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError):
        raise InputError(
            f"{path}: not a list of claims with the keys {', '.join(KEYS)}; draw the figure again"
        ) from None


def read_folder(folder: Path) -> tuple[dict[str, dict[str, list[Claim]]], list[InputError]]:
    """{study: {figure: claims}} of the files STUDY-FIGURE.claims.json, and what cannot be read."""
    found: dict[str, dict[str, list[Claim]]] = {}
    refused = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        study, _, figure = path.name.removesuffix(SUFFIX).rpartition("-")
        try:
            found.setdefault(study, {})[figure] = read(path)
        except InputError as error:
            refused.append(error)
    return found, refused


def _claim(*, verdict: str, evidence: list[dict[str, Any]], **texts: str) -> Claim:
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError
    found = [Evidence(**one | {"verdict": Verdict(one.get("verdict", ""))}) for one in evidence]
    return Claim(verdict=Verdict(verdict), evidence=found, **texts)
