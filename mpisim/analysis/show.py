"""The text of `mpisim show LOG`: what was run, last values, bits, time by phase."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from mpisim.analysis import labels as words
from mpisim.runs.log.reader import Log, damaged, read
from mpisim.runs.progress import duration, quantity

BITS = (
    ("payload", "bits_up", "bits_down"),
    ("framing", "framing_bits_up", "framing_bits_down"),
    ("as the paper charges", "paper_bits_up", None),
)
VALUES = ("loss", "grad_norm_sq", "suboptimality", "distance_sq")


def show_text(path: Path) -> str:
    """A page on one log; `InputError` where it cannot be read."""
    log = read(path)
    with damaged(path):
        blocks = [_table(_what(log))]
        if log.rows:
            blocks += [_table(_last(log)), _bits(log), _times(log)]
        else:
            blocks.append("no row yet")
    return "\n\n".join(block for block in blocks if block)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"{name:<14}{value}" for name, value in rows if value)


def _what(log: Log) -> list[tuple[str, str]]:
    attrs, config = log.attrs, log.config
    run = config.get("run", {})
    step = attrs.get("stepsize")
    source = attrs.get("stepsize_source")
    compressor = words.compressor(config.get("compressor", {"name": attrs.get("compressor", "")}))
    return [
        ("log", str(log.path)),
        ("title", str(attrs.get("title", ""))),
        ("command", str(attrs.get("command", ""))),
        ("problem", _problem(log)),
        ("method", words.method(str(attrs.get("method", "")))),
        (
            "step size",
            f"{step:.6g}" + (f", {source}" if source else "") if step is not None else "",
        ),
        ("compressor", compressor),
        ("workers", f"{log.n} on {_count(attrs.get('ranks', '?'), 'rank')}{_layout(run)}"),
        ("hosts", str(attrs.get("hosts", ""))),
        ("network", str(attrs.get("network", ""))),
        ("seed", str(attrs.get("seed", ""))),
        ("MPI", str(attrs.get("mpi_library", ""))),
        ("mpisim", str(attrs.get("package_version", ""))),
        ("status", _status(log)),
    ]


def _problem(log: Log) -> str:
    text = words.problem(log.config.get("problem", {}))
    dimension = log.attrs.get("dimension")
    return ", ".join(part for part in (text, f"d = {dimension}" if dimension else "") if part)


def _layout(run: dict) -> str:
    return f", {run['layout']} layout" if "layout" in run else ""


def _count(number: object, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _status(log: Log) -> str:
    """Status with start and duration; a log that never got its end says so."""
    status = str(log.attrs.get("status", "unknown"))
    start, end = (str(log.attrs.get(key, "")) for key in ("start", "end"))
    if start and not end:
        return f"{status} since {start}, or killed: no end is written"
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return status
    return f"{status}; started {start}, took {duration(seconds)}"


def _last(log: Log) -> list[tuple[str, str]]:
    planned = log.config.get("run", {}).get("rounds")
    columns = log.columns
    rows = []
    if "round" in columns:
        of = f" of {planned}" if planned is not None else ""
        rows.append(("round", f"{columns['round'][-1]}{of} ({_count(log.rows, 'row')} logged)"))
    rows += [(name, f"{columns[name][-1]:.6g}") for name in VALUES if name in columns]
    if "oracle_calls" in columns:
        calls = columns["oracle_calls"][-1]
        rows.append(("oracle_calls", f"{calls} ({calls / log.n:.6g} per worker)"))
    return rows


def _bits(log: Log) -> str:
    """Bits so far as a table: kind, up, down, for each worker."""
    lines = [f"{'bits per worker':<22}{'up':>16}{'down':>16}"]
    for name, up, down in BITS:
        if up in log.columns:
            cells = [_share(log, column) for column in (up, down)]
            lines.append(f"  {name:<20}{cells[0]:>16}{cells[1]:>16}".rstrip())
    return "\n".join(lines) if len(lines) > 1 else ""


def _share(log: Log, column: str | None) -> str:
    if column is None or column not in log.columns:
        return ""
    return quantity(log.columns[column][-1] / log.n, "bit")


def _times(log: Log) -> str:
    """Seconds so far by phase, with percentages."""
    times = {name: v[-1] for name, v in log.columns.items() if name.startswith("time_")}
    if not times:
        return ""
    total = sum(times.values())
    lines = [f"{'time':<22}{duration(total):>16}"]
    for name, seconds in sorted(times.items(), key=lambda item: -item[1]):
        share = f"{seconds / total:6.1%}" if total > 0 else ""
        lines.append(f"  {name.removeprefix('time_'):<20}{seconds:>14.3f} s{share:>10}")
    return "\n".join(lines)
