"""The seconds of a log in `mpisim show`: by phase, and how they add up to what has elapsed."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from mpisim.analysis.oversubscription import WHY, oversubscribed
from mpisim.runs.log.reader import Log
from mpisim.runs.progress import duration

WIDTH = 22


def phases_text(log: Log) -> str:
    """Seconds by phase, with percentages, the longest first."""
    times = {name: v[-1] for name, v in log.columns.items() if name.startswith("time_")}
    if not times:
        return ""
    total = sum(times.values())
    lines = [_total("time", total)]
    for name, seconds in sorted(times.items(), key=lambda item: -item[1]):
        share = f"{seconds / total:6.1%}" if total > 0 else ""
        lines.append(f"{_line(name.removeprefix('time_'), seconds)}{share:>10}")
    if oversubscribed([log]):
        lines.append(f"  {WHY}: these seconds say little of the method")
    return "\n".join(lines)


def elapsed_text(log: Log) -> str:
    """How the parts of a run add up to the time that it took."""
    if not any(name.startswith("time_") for name in log.columns):
        return ""
    method = float(log.column("seconds")[-1])
    elapsed = float(log.attrs.get("seconds_elapsed", "nan"))
    if not isfinite(elapsed):
        return _unknown(log)
    earlier = float(log.attrs["seconds_before"])
    setup, rehearsal, evaluation = (
        float(log.attrs[f"seconds_{part}"]) for part in ("setup", "rehearsal", "evaluation")
    )
    rest = elapsed - setup - rehearsal - evaluation - (method - earlier)
    when = (
        f" since round {log.attrs['resumed']}, where it resumed" if "resumed" in log.attrs else ""
    )
    lines = [f"{_total('elapsed', elapsed)}   by rank 0's clock{when}"]
    parts = (
        ("set-up", setup, "before round 0, except for what the method sends there"),
        ("rehearsal", rehearsal, "opening the log, and rounds that warm up the kernels"),
        ("method", method - earlier, "the phases above, on the slowest path"),
        ("evaluation", evaluation, "rows of the log, checkpoints"),
        ("rest", rest, "rank 0's time beyond the slowest path, or short of it"),
    )
    lines += [f"{_line(name, seconds)}   {what}" for name, seconds, what in parts]
    lines += (f"  {remark}" for remark in _remarks(log, earlier))
    return "\n".join(lines)


def _total(name: str, seconds: float) -> str:
    text = f"{seconds:.3f} s" if seconds < 60 else duration(seconds)
    return f"{name:<{WIDTH}}{text:>16}"


def _line(name: str, seconds: float) -> str:
    return f"  {name:<{WIDTH - 2}}{seconds:>14.3f} s"


def _remarks(log: Log, earlier: float) -> Iterator[str]:
    """Why other numbers of the page are not in the sum."""
    waited = float(log.attrs["seconds_waiting"])
    if waited > 0:
        yield (
            f"waiting, {waited:.3f} s of rank 0 for slower ranks, is not added: the method has"
            " their work instead"
        )
    if "resumed" in log.attrs:
        yield (
            f"earlier starts, {earlier:.3f} s of the phases above, are not in it; the time from"
            " start to end includes the pause between them"
        )


def _unknown(log: Log) -> str:
    if "seconds_elapsed" in log.attrs:
        return (
            "elapsed: not known before the run has ended; time leaves out set-up, rehearsal and"
            " evaluation"
        )
    return (
        "elapsed: start and end above include the evaluation of rows and the writing of the log,"
        " which time leaves out; this log does not say how long they took"
    )
