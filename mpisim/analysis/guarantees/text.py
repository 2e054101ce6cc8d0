"""Numbers and tables as `mpisim theory` prints them."""

from __future__ import annotations

from collections.abc import Iterable

UNKNOWN = "-"


def span(values) -> str:
    """The least and the largest of an array, or the one value that all are."""
    least, most = number(float(values.min())), number(float(values.max()))
    return least if least == most else f"{least} to {most}"


def number(value: object) -> str:
    """Six digits; "-" for None."""
    if value is None:
        return UNKNOWN
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def aligned(lines: Iterable[tuple[str, str]]) -> str:
    """Names and values below each other, without those that have no value."""
    return "\n".join(f"{name:<14}{value}" for name, value in lines if value)


def columns(lines: list[tuple[str, ...]], right: tuple[int, ...] = ()) -> str:
    """Cells below each other, the columns ``right`` flush right."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    out = []
    for line in lines:
        cells = (
            cell.rjust(widths[i]) if i in right else cell.ljust(widths[i])
            for i, cell in enumerate(line)
        )
        out.append("  " + "  ".join(cells).rstrip())
    return "\n".join(out)
