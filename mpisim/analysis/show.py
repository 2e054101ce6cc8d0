"""The texts of `mpisim show`: a page about one log, and the list of the runs of a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isfinite, nan
from pathlib import Path
from typing import Any

from mpisim.analysis.curves import WHY, Axis, about_framing, oversubscribed
from mpisim.analysis.formatting import TABLES, number, pairs, table
from mpisim.analysis.labels import Cell, columns
from mpisim.analysis.log_files import about
from mpisim.analysis.run_groups import RunGroup
from mpisim.core.schema import choose
from mpisim.runs import labels
from mpisim.runs.log.reader import Log, damaged, read
from mpisim.runs.progress import bits_text, duration

BITS = (
    ("payload", "bits_up", "bits_down"),
    ("framing", "framing_bits_up", "framing_bits_down"),
    ("as the paper charges", "paper_bits_up"),
)
VALUES = ("loss", "grad_norm_sq", "suboptimality", "distance_sq")
WIDTH = 22  # of the names of bits and seconds

LEADING = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?(?= )")  # of "4 × theory"
LAST = ("loss", "grad_norm_sq")  # columns whose last values are listed
LONGEST = 20  # letters of a path in a list that is too wide
LEAST = ("bits_per_worker", "loss", "seconds", "round", "run.seed")  # left out first
HEAD_AFTER = ("status", "round", *LAST, "bits_per_worker", "seconds")


def show_text(path: Path, framing: bool = False) -> str:
    """A page about one log, with ``framing`` added to payload bits; `InputError` where it cannot be
    read."""
    log = read(path)
    with damaged(path):
        blocks = [pairs(_settings(log))]
        if log.rows:
            blocks += [pairs(_last_row(log)), _bits(log, framing)]
            if any(name.startswith("time_") for name in log.columns):
                blocks += [_phases(log), _elapsed(log)]
        else:
            blocks.append("no row yet")
    return "\n\n".join(filter(None, blocks))


def _settings(log: Log) -> list[tuple[str, str]]:
    attrs, config, names = log.attrs, log.config, labels.of_log(log.attrs)

    def attribute(name: str, before: str = "") -> str:
        value = str(attrs.get(name, ""))
        return before + value if value else ""

    run, step, ranks = config.get("run", {}), attrs.get("stepsize"), attrs.get("ranks", "?")
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
        ("server", _rule(config.get("server", {}))),
        ("attack", _attack(config.get("attack", {}))),
        ("workers", f"{log.n} on {ranks} rank{'s' * (ranks != 1)}{layout}"),
        *((name, attribute(key)) for name, key in TABLES["attributes"].items()),
        ("status", _status(log)),
        ("stopped by", _stopped_by(log)),
    ]


def _rule(server: Mapping[str, Any]) -> str:
    """How the server combines messages; empty for their mean."""
    rule = f"{server.get('aggregate', 'mean')}, buckets = {server.get('buckets', 1)}"
    return "" if rule == "mean, buckets = 1" else rule.removesuffix(", buckets = 1")


def _attack(attack: Mapping[str, Any]) -> str:
    """Who attacks; empty if all are honest."""
    if not attack:
        return ""
    return f"{attack.get('name')}, share = {attack.get('share')}; f is over the good workers"


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
    last = {name: values[-1] for name, values in log.columns.items()}
    planned, rows = log.config.get("run", {}).get("rounds"), []
    if "round" in last:
        of = f" of {planned}" if planned is not None else ""
        rows.append(("round", f"{last['round']}{of} ({log.rows} row{'s' * (log.rows > 1)} logged)"))
    rows += [(name, f"{last[name]:.6g}") for name in VALUES if name in last]
    for name in ("oracle_calls", "messages_up"):
        if name in last:
            rows.append((name, f"{last[name]} ({last[name] / log.n:.6g} per worker)"))
    return rows


def _bits(log: Log, framing: bool) -> str:
    """A table of bits per worker: kind, up, down; below it, whether framing is large."""
    lines = [f"{'bits per worker':<{WIDTH}}{'up':>16}{'down':>16}"]
    payload = [Axis(name, False, framing=framing) for name in BITS[0][1:]]
    for name, *ways in (("payload and framing", *BITS[0][1:]), *BITS[2:]) if framing else BITS:
        if ways[0] in log.columns:
            axes = [Axis(way, False, framing=framing) for way in ways if way in log.columns]
            cells = [f"{bits_text(axis.values(log)[-1]):>16}" for axis in axes]
            lines.append(f"  {name:<{WIDTH - 2}}{''.join(cells)}")
    lines += filter(None, [about_framing([RunGroup([log], {})], payload)])
    return "\n".join(lines) if len(lines) > 1 else ""


def _phases(log: Log) -> str:
    """Seconds by phase, with percentages, the longest first."""
    times = {name: v[-1] for name, v in log.columns.items() if name.startswith("time_")}
    total = sum(times.values())
    lines = [_total("time", total)]
    for name, seconds in sorted(times.items(), key=lambda item: -item[1]):
        share = f"{seconds / total:6.1%}" if total > 0 else ""
        lines.append(f"{_line(name.removeprefix('time_'), seconds)}{share:>10}")
    if oversubscribed([log]):
        lines.append(f"  {WHY}: these seconds say little of the method")
    return "\n".join(lines)


def _elapsed(log: Log) -> str:
    """How the parts of a run add up to the time that it took."""
    attrs = log.attrs
    names = ("elapsed", "before", "waiting", "setup", "rehearsal", "evaluation")
    seconds = [float(attrs.get(f"seconds_{name}", nan)) for name in names]
    elapsed, earlier, waited, setup, rehearsal, evaluation = seconds
    if not isfinite(elapsed):
        return TABLES["unknown"]["elapsed"]
    method = float(log.column("seconds")[-1]) - earlier
    rest = elapsed - setup - rehearsal - evaluation - method
    resumed = "resumed" in attrs
    when = f" since round {attrs['resumed']}, where it resumed" if resumed else ""
    lines = [f"{_total('elapsed', elapsed)}   by rank 0's clock{when}"]
    parts = setup, rehearsal, method, evaluation, rest
    for part, (name, what) in zip(parts, TABLES["elapsed"].items(), strict=True):
        lines.append(f"{_line(name, part)}   {what}")
    if waited > 0:
        lines.append(
            f"  waiting, {waited:.3f} s of rank 0 for slower ranks, is not added: the method has"
            " their work instead"
        )
    if resumed:
        lines.append(
            f"  earlier starts, {earlier:.3f} s of the phases above, are not in it; the time from"
            " start to end includes the pause between them"
        )
    return "\n".join(lines)


def _total(name: str, seconds: float) -> str:
    text = f"{seconds:.3f} s" if seconds < 60 else duration(seconds)
    return f"{name:<{WIDTH}}{text:>16}"


def _line(name: str, seconds: float) -> str:
    return f"  {name:<{WIDTH - 2}}{seconds:>14.3f} s"


def run_list(
    folder: Path | None, logs: Sequence[Log], every: bool = False, more: bool = False
) -> tuple[list[str], list[list[Cell]]]:
    """Head and rows: the log's path in the folder, settings that vary, status, last values.

    A setting varies if two runs have different values of it; with ``every``, all are there. Values
    that a run or its log does not have are None. ``more`` adds label, n, seed and gamma.
    """
    chosen, further = columns([log.config for log in logs], every), about(logs, folder)
    extra = ["label", "n", "seed", "stepsize"] if more else []
    before = [further["log"].tolist(), *chosen.values()]
    after = [further[n].tolist() for n in extra]
    rows = []
    for i, log in enumerate(logs):
        with damaged(log.path):
            rows.append([*(cells[i] for cells in before), *_end(log), *(one[i] for one in after)])
    return ["log", *chosen, *HEAD_AFTER, *extra], rows


def fitted(head: Sequence[str], rows: Sequence[list[Cell]], width: int) -> str:
    """The list in lines of at most ``width`` letters: keys without their table, names by it alone,
    four digits, ends of long paths, and then without columns of `LEAST` and settings from the last
    one on, which a last line counts. The path, the status and grad_norm_sq stay."""
    right = {i for row in rows for i, cell in enumerate(row) if isinstance(cell, int | float)}
    short = [name.removesuffix(".name").rpartition(".")[2] for name in head]
    names = [one if short.count(one) == 1 else name for one, name in zip(short, head, strict=True)]
    settings = [name for name in reversed(head) if "." in name]
    texts = [[number(cell, 4) for cell in row] for row in rows]
    for row in texts:
        row[0] = row[0] if len(row[0]) <= LONGEST else f"…{row[0][1 - LONGEST :]}"
    kept = list(range(len(head)))
    last = [name for name in dict.fromkeys((*LEAST, *settings)) if name in head]
    while True:
        cells = [[row[i] for i in kept] for row in texts]
        flush = [place for place, i in enumerate(kept) if i in right]
        lines = table([names[i] for i in kept], cells, right=flush).splitlines()
        if max(map(len, lines)) <= width or not last:
            break
        kept.remove(head.index(last.pop(0)))
    left_out = len(head) - len(kept)
    note = [f"({left_out} more columns: --csv)"] if left_out else []
    return "\n".join([*(line[:width] for line in lines), *note])


def in_order(
    head: Sequence[str], rows: Sequence[list[Cell]], name: str | None, reverse: bool
) -> list[list[Cell]]:
    """The rows by the column ``name``: numbers, then texts, then None, which stays at the end."""
    if name is None:
        return list(reversed(rows)) if reverse else list(rows)
    place = choose({column: i for i, column in enumerate(head)}, name, "--sort")
    there = [row for row in rows if row[place] is not None]
    there.sort(key=lambda row: _rank(row[place]), reverse=reverse)
    return there + [row for row in rows if row[place] is None]


def _rank(cell: Any) -> tuple[float | str, ...]:
    """Sorts numbers, also those ahead of a unit, before NaN, and that before texts."""
    if isinstance(cell, str):
        number = LEADING.match(cell)
        return (0, float(number[0]), cell) if number else (2, cell)
    return (0, cell, "") if cell == cell else (1,)


def _end(log: Log) -> list[Cell]:
    last, bits = _last(log, "round"), _last(log, "bits_up")
    return [
        str(log.attrs.get("status", "unknown")),
        None if last is None else int(last),
        *(_last(log, name) for name in LAST),
        None if bits is None else bits / log.n,
        _last(log, "seconds"),
    ]


def _last(log: Log, name: str) -> float | None:
    return float(log.column(name)[-1]) if log.has(name) else None
