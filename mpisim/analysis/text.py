"""Numbers and tables in plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mpisim.core.terminal import one_line

UNKNOWN = "-"


def span(values) -> str:
    """The least and the largest value of an array, or its only one."""
    least, most = number(values.min().item()), number(values.max().item())
    return least if least == most else f"{least} to {most}"


def number(value: object) -> str:
    """Six digits; "-" for None."""
    if value is None:
        return UNKNOWN
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def aligned(lines: Iterable[tuple[str, str]]) -> str:
    """A name and a value per line, without those whose value is empty."""
    return "\n".join(f"{name:<14}{one_line(value)}" for name, value in lines if value)


def columns(
    lines: Sequence[tuple[str, ...]], right: tuple[int, ...] = (), indent: str = "  "
) -> str:
    """A table of cells; the columns numbered in ``right`` are flush right."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    out = []
    for line in lines:
        cells = (
            cell.rjust(widths[i]) if i in right else cell.ljust(widths[i])
            for i, cell in enumerate(line)
        )
        out.append(indent + "  ".join(cells).rstrip())
    return "\n".join(out)
