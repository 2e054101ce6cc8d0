"""The text of `mpisim show`: settings, last values, bits and time by phase of one log."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from mpisim.analysis import labels
from mpisim.analysis.text import aligned
from mpisim.runs.log.reader import Log, damaged, read
from mpisim.runs.progress import duration, quantity

BITS = (
    ("payload", "bits_up", "bits_down"),
    ("framing", "framing_bits_up", "framing_bits_down"),
    ("as the paper charges", "paper_bits_up", None),
)
VALUES = ("loss", "grad_norm_sq", "suboptimality", "distance_sq")


def show_text(path: Path) -> str:
    """A page about one log; `InputError` where it cannot be read."""
    log = read(path)
    with damaged(path):
        blocks = [aligned(_settings(log))]
        if log.rows:
            blocks += [aligned(_last_row(log)), _bits(log), _times(log)]
        else:
            blocks.append("no row yet")
    return "\n\n".join(block for block in blocks if block)


def _settings(log: Log) -> list[tuple[str, str]]:
    attrs, config = log.attrs, log.config
    run = config.get("run", {})
    step = attrs.get("stepsize")
    source = attrs.get("stepsize_source")
    compressor = labels.compressor(config.get("compressor", {"name": attrs.get("compressor", "")}))
    return [
        ("log", str(log.path)),
        ("title", str(attrs.get("title", ""))),
        ("command", str(attrs.get("command", ""))),
        ("problem", _problem(log)),
        ("method", labels.method(str(attrs.get("method", "")))),
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
    text = labels.problem(log.config.get("problem", {}))
    dimension = log.attrs.get("dimension")
    return ", ".join(part for part in (text, f"d = {dimension}" if dimension else "") if part)


def _layout(run: dict) -> str:
    return f", {run['layout']} layout" if "layout" in run else ""


def _count(number: object, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _status(log: Log) -> str:
    """The status, with start and duration, or a remark that the log has no end."""
    status = str(log.attrs.get("status", "unknown"))
    start, end = (str(log.attrs.get(key, "")) for key in ("start", "end"))
    if start and not end:
        return f"{status} since {start}, or killed: no end is written"
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return status
    return f"{status}; started {start}, took {duration(seconds)}"


def _last_row(log: Log) -> list[tuple[str, str]]:
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
    """A table of bits per worker: kind, up, down."""
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
    """Seconds by phase, with percentages, the longest first."""
    times = {name: v[-1] for name, v in log.columns.items() if name.startswith("time_")}
    if not times:
        return ""
    total = sum(times.values())
    lines = [f"{'time':<22}{duration(total):>16}"]
    for name, seconds in sorted(times.items(), key=lambda item: -item[1]):
        share = f"{seconds / total:6.1%}" if total > 0 else ""
        lines.append(f"  {name.removeprefix('time_'):<20}{seconds:>14.3f} s{share:>10}")
    return "\n".join(lines)
