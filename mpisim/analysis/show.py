"""The text of `mpisim show`: settings, last values, bits and seconds of one log."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from mpisim.analysis import framing as framing_of
from mpisim.analysis import labels
from mpisim.analysis.curves import Axis
from mpisim.analysis.run_groups import RunGroup
from mpisim.analysis.show_seconds import elapsed_text, phases_text
from mpisim.analysis.text import aligned
from mpisim.runs.log.reader import Log, damaged, read
from mpisim.runs.progress import duration, quantity

BITS = (
    ("payload", "bits_up", "bits_down"),
    ("framing", "framing_bits_up", "framing_bits_down"),
    ("as the paper charges", "paper_bits_up"),
)
VALUES = ("loss", "grad_norm_sq", "suboptimality", "distance_sq")


def show_text(path: Path, framing: bool = False) -> str:
    """A page about one log, with ``framing`` added to payload bits; `InputError` where it cannot be
    read."""
    log = read(path)
    with damaged(path):
        settings = _settings(log)
        last = _results(log, framing) if log.rows else ["no row yet"]
    return "\n\n".join(filter(None, [aligned(settings), *last]))


def _results(log: Log, framing: bool) -> list[str]:
    return [aligned(_last_row(log)), _bits(log, framing), phases_text(log), elapsed_text(log)]


def _settings(log: Log) -> list[tuple[str, str]]:
    attrs, config, names = log.attrs, log.config, labels.of_log(log.attrs)

    def attribute(name: str, before: str = "") -> str:
        value = str(attrs.get(name, ""))
        return before + value if value else ""

    run, step = config.get("run", {}), attrs.get("stepsize")
    problem = names.problem(config.get("problem", {})), attribute("dimension", "d = ")
    layout = f", {run['layout']} layout" if "layout" in run else ""
    compressor = names.compressor(config.get("compressor", {"name": attrs.get("compressor", "")}))
    return [
        ("log", str(log.path)),
        ("title", attribute("title")),
        ("command", attribute("command")),
        ("problem", ", ".join(filter(None, problem))),
        ("method", names.method(attribute("method"))),
        ("step size", "" if step is None else f"{step:.6g}{attribute('stepsize_source', ', ')}"),
        ("compressor", compressor),
        ("workers", f"{log.n} on {_count(attrs.get('ranks', '?'), 'rank')}{layout}"),
        ("hosts", attribute("hosts")),
        ("plugins", attribute("plugin_packages")),
        ("network", attribute("network")),
        ("seed", attribute("seed")),
        ("MPI", attribute("mpi_library")),
        ("mpisim", attribute("package_version")),
        ("status", _status(log)),
        ("stopped by", _stopped_by(log)),
    ]


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
    if "resumed" in log.attrs:
        return f"{status}; started {start}, resumed at round {log.attrs['resumed']}, ended {end}"
    elapsed = log.attrs.get("seconds_elapsed", seconds)  # with the set-up, which precedes the log
    return f"{status}; started {start}, took {duration(elapsed)}"


def _stopped_by(log: Log) -> str:
    """What ended a run that is done: run.rounds, or the condition of run.stop."""
    name, run = str(log.attrs.get("stopped_by", "")), log.config.get("run", {})
    if name == "rounds":
        return "run.rounds"
    return f"run.stop.{name} = {run['stop'][name]}" if name else ""


def _last_row(log: Log) -> list[tuple[str, str]]:
    columns, planned, rows = log.columns, log.config.get("run", {}).get("rounds"), []
    if "round" in columns:
        of = f" of {planned}" if planned is not None else ""
        rows.append(("round", f"{columns['round'][-1]}{of} ({_count(log.rows, 'row')} logged)"))
    rows += [(name, f"{columns[name][-1]:.6g}") for name in VALUES if name in columns]
    for name in ("oracle_calls", "messages_up"):
        if name in columns:
            count = columns[name][-1]
            rows.append((name, f"{count} ({count / log.n:.6g} per worker)"))
    return rows


def _bits(log: Log, framing: bool) -> str:
    """A table of bits per worker: kind, up, down; below it, whether framing is large."""
    lines = [f"{'bits per worker':<22}{'up':>16}{'down':>16}"]
    payload = [Axis(name, False, framing=framing) for name in BITS[0][1:]]
    for name, *ways in (("payload and framing", *BITS[0][1:]), *BITS[2:]) if framing else BITS:
        if ways[0] in log.columns:
            axes = [Axis(way, False, framing=framing) for way in ways if way in log.columns]
            cells = [f"{quantity(axis.values(log)[-1], 'bit'):>16}" for axis in axes]
            lines.append(f"  {name:<20}{''.join(cells)}")
    lines += filter(None, [framing_of.note([RunGroup([log], {})], payload)])
    return "\n".join(lines) if len(lines) > 1 else ""
