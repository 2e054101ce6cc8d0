"""The table that benchmarks end with."""

from __future__ import annotations


def show(rows: list[dict]) -> None:
    """Print `benchmarks.common.result` rows, and whether their bounds are kept."""
    width = max(58, *(len(row["what"]) for row in rows))
    print(f"\n{'what':{width}} {'measured':>12} {'against':>12} {'ratio':>8} {'bound':>9}")
    for row in rows:
        measured, against = (f"{row[key]:.4g} {row['unit']}" for key in ("measured", "against"))
        bound = row["bound"]  # "<= 1.5" or ">= 60"
        ratio, limit = row["ratio"], float(bound[3:] or "inf")
        kept = ratio >= limit if bound.startswith(">=") else ratio <= limit
        verdict = ("ok" if kept else "MISSED") if bound else ""
        print(
            f"{row['what']:{width}} {measured:>12} {against:>12} {ratio:8.3g} {bound:>9} {verdict}"
        )
