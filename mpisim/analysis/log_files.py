"""The logs that a user names: found, read, in order or selected; and their rows in one table."""

from __future__ import annotations

import glob
import importlib.util
import io
import operator
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.analysis.formatting import table
from mpisim.analysis.labels import cell, columns
from mpisim.analysis.run_groups import group_runs, groups_of
from mpisim.analysis.tune import DEFAULT, ranked
from mpisim.core.errors import InputError, library, suggestion
from mpisim.core.schema import parse_toml
from mpisim.core.terminal import one_line, report
from mpisim.runs.labels import flatten, varying
from mpisim.runs.log.reader import DERIVED, Log, attributes_of, read_each
from mpisim.runs.log.untrusted import DAMAGE

PathLike = str | os.PathLike
Logs = PathLike | Log | Iterable[PathLike | Log]
SUFFIX = ".h5"
# Settings by which logs are ordered; those that vary stand between the first and the last.
FIRST = ("method.name", "compressor.name", "problem.name", "problem.data")
LAST = ("run.seed",)
CONDITION = re.compile(r"\s*([\w.-]+)\s*(==|!=|<=|>=|<|>|=)\s*(.+?)\s*")
SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    **{"==": operator.eq, "=": operator.eq, "!=": operator.ne},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
ATTRIBUTES = ("seed", "status", "ranks", "workers", "stepsize")  # of a log, beside TABLE.KEY
Rows = dict[str, np.ndarray]
HELD = ("method.name", "compressor.name", "run.seed")  # settings with a column of their own


def load(paths: Logs) -> list[Log]:
    """The logs at ``paths`` (see `find`) that can be read; the others have a line: `readable`.

    Logs that were read already are taken as they are.
    """
    named = [paths] if isinstance(paths, PathLike | Log) else list(paths)
    read = [one for one in named if isinstance(one, Log)]
    rest = [one for one in named if not isinstance(one, Log)]
    return read if read and not rest else read + readable(find(rest))[0]


def find(paths: Iterable[PathLike]) -> list[Path]:
    """The logs at ``paths``: logs, folders of logs, and patterns such as logs/*.h5.

    Those of a folder or a pattern are in the order of their settings.

    `InputError` for a folder without logs and for a pattern that no file fits.
    """
    return [log for path in paths for log in _at(Path(path))]


def folder_of(named: Sequence[PathLike], logs: Sequence[Path]) -> Path:
    """The folder in which tables give the paths of logs: the one that was named, else that of all.

    named, logs : what `find` was given, and what it returned
    """
    if len(named) == 1 and Path(named[0]).is_dir():
        return Path(named[0])
    return Path(os.path.commonpath([path.absolute().parent for path in logs]))


def below(folder: Path) -> list[Path]:
    """The logs of a folder and of all folders in it; `InputError` if there is none."""
    return _some(folder, folder.rglob(f"*{SUFFIX}"))


def readable(paths: Sequence[Path]) -> tuple[list[Log], list[InputError]]:
    """The logs that can be read and hold their experiment, and why others are passed over.

    A line on standard error says so of each. `InputError` where no log is left, and for a file that
    is not there.
    """
    results = read_each(paths)
    refused = [one for one in results if isinstance(one, InputError)]
    for path, one in zip(paths, results, strict=True):
        if isinstance(one, InputError) and (len(paths) == 1 or not os.path.lexists(path)):
            raise one
    for error in refused:
        report(f"mpisim: passed over: {one_line(error)}")
    if len(refused) == len(paths):
        raise InputError(f"none of the {len(paths)} files is a log that can be read")
    return [one for one in results if isinstance(one, Log)], refused


def by_settings(logs: Sequence[Path]) -> list[Path]:
    """The logs by method, compressor, problem, then all settings that vary, and the seed.

    Multiples of the theory step are in the order of their size. Logs without an experiment that
    can be read come last, by name.
    """
    experiments = list(map(_experiment, attributes_of(logs, ("config",))))
    middle = [name for name in varying(experiments) if name not in FIRST + LAST]

    def place(one: tuple[Path, dict[str, Any]]) -> tuple[Any, ...]:
        log, flat = one
        return not flat, [_rank(flat.get(name)) for name in (*FIRST, *middle, *LAST)], log

    return [log for log, _ in sorted(zip(logs, experiments, strict=True), key=place)]


def _at(path: Path) -> list[Path]:
    if path.is_dir() and not (path.suffix == SUFFIX and not any(path.glob(f"*{SUFFIX}"))):
        return by_settings(_some(path, path.glob(f"*{SUFFIX}")))
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    matches = sorted(map(Path, glob.glob(str(path), recursive=True)))
    if not matches:
        raise InputError(f"{path}: no file fits this pattern")
    return by_settings(matches)


def _some(folder: Path, logs: Iterable[Path]) -> list[Path]:
    if not (paths := sorted(logs)):
        raise InputError(f"{folder}: holds no log (*{SUFFIX})")
    return paths


def _experiment(attributes: Any) -> dict[str, Any]:
    """The flat experiment of a log, from what `attributes_of` finds; empty where there is none."""
    try:
        return flatten(parse_toml(str(attributes["config"]), "config"))
    except (InputError, *DAMAGE):
        return {}


def _rank(value: Any) -> tuple[int, float, str]:
    """Missing values, numbers, multiples of the theory step, texts."""
    if value is None:
        return 0, 0.0, ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 1, float(value), ""
    if value == "theory" or (isinstance(value, dict) and isinstance(value.get("theory"), float)):
        return 2, 1.0 if value == "theory" else value["theory"], repr(value)
    return 3, 0.0, str(value)


def selected(
    logs: Sequence[Log],
    where: str | Sequence[str] = (),
    best: bool | str | None = None,
    by_ranks: bool = True,
) -> list[Log]:
    """The logs that meet all conditions; with ``best`` only those of the best step of each setting.

    where : ``compressor.k == 10``, ``method.name != gd``, ``status == done``; a run that lacks the
        key does not meet it
    best : a rule of `mpisim.analysis.tune.CRITERIA`; True is the usual one
    by_ranks : whether seconds are shown, so that other ranks are other settings

    `InputError` for a condition that cannot be read, and where no log is left.
    """
    kept = list(logs)
    for text in [where] if isinstance(where, str) else where:
        kept = _meeting(text, kept)
    return _best(kept, DEFAULT if best is True else best, by_ranks) if best else kept


def _meeting(text: str, logs: list[Log]) -> list[Log]:
    parts = CONDITION.fullmatch(text)
    if parts is None:
        form = f"KEY SIGN VALUE, such as 'compressor.k == 10', with a sign of {', '.join(SIGNS)}"
        raise InputError(f"--where: {text!r} is not allowed; it must be {form}")
    key, sign, wanted = parts.groups()
    values = []
    for log in logs:
        attributes = {name: log.attrs[name] for name in ATTRIBUTES if name in log.attrs}
        values.append({k: cell(value) for k, value in flatten(log.config).items()} | attributes)
    names = sorted({name for one in values for name in one})
    if key not in names:
        hint = f"{suggestion(key, names)}known: {', '.join(names)}"
        raise InputError(f"--where: {text!r}: no run has {key}; {hint}")
    value = wanted.strip("'\"")
    pairs = zip(logs, values, strict=True)
    kept = [log for log, one in pairs if key in one and _meets(one[key], sign, value)]
    if not kept:
        there = ", ".join(sorted({str(one[key]) for one in values if key in one}))
        raise InputError(f"--where: {text!r}: no run meets it; {key} is {there}")
    return kept


def _meets(value: Any, sign: str, wanted: str) -> bool:
    """Numbers are compared as numbers; a number and a text are different, and in no order."""
    numbers = []
    for one in (value, wanted):
        with suppress(ValueError):
            numbers.append(float(one))
    if len(numbers) == 1 and sign not in ("==", "=", "!="):
        return False
    return SIGNS[sign](*numbers) if len(numbers) == 2 else SIGNS[sign](str(value), wanted)


def _best(logs: list[Log], criterion: str, by_ranks: bool) -> list[Log]:
    kept: set[str] = set()
    groups = group_runs(logs, by_ranks)
    longest = [log for group in groups for log in group.logs]  # not a smaller budget's
    for setting in ranked(longest, criterion, by_ranks):
        steps = setting.candidates
        chosen = setting.best or (steps[0] if len(steps) == 1 else None)
        if chosen is None:
            report(f"mpisim: --best: {setting.label}: no step is left, {steps[0].out}")
            continue
        kept |= set(chosen.logs)
    if not kept:
        raise InputError("--best: every step of every setting is out; try smaller steps")
    return [log for log in logs if str(log.path) in kept]


# rows


def all_rows(logs: Sequence[Log], root: Path | None = None, every: bool = False) -> Rows:
    """{column: values}, a row for each logged round of each log, in the order of the logs.

    What is the same in all rows of a log comes first: see `about`. Then come the columns of the
    logs, ``bits_per_worker``, and those that follow from them: ``seconds``, ``bits_total``,
    ``mean_grad_norm_sq``. Where a log lacks a column that another one has, its values are NaN.
    """
    tables = []
    for log in logs:
        each = {"bits_per_worker": log.columns["bits_up"] / log.n} if log.has("bits_up") else {}
        derived = {name: log.column(name) for name in DERIVED if log.has(name)}
        tables.append(log.columns | each | derived)
    names = dict.fromkeys(name for one in tables for name in one)
    ordered = sorted(names, key=lambda name: DERIVED.index(name) if name in DERIVED else -1)
    lengths = [log.rows for log in logs]
    repeated = {name: np.repeat(v, lengths) for name, v in about(logs, root, every).items()}
    pairs = [(one, np.full(rows, np.nan)) for one, rows in zip(tables, lengths, strict=True)]
    return repeated | {n: np.concatenate([one.get(n, nan) for one, nan in pairs]) for n in ordered}


def about(logs: Sequence[Log], root: Path | None = None, every: bool = False) -> Rows:
    """{column: values}, a value for each log, shape (logs,).

    ``log`` is its path in the folder ``root`` (that of all logs unless given). Then come
    ``method.name``, ``compressor.name``, ``seed``, ``label`` (as in legends), ``n``, ``status``,
    ``stepsize`` (gamma), and the settings that vary, by TABLE.KEY; with ``every`` all settings.
    """
    paths = [log.path for log in logs]
    root = root or folder_of(paths, paths)
    labels = {log.path: group.name for group in groups_of(logs) for log in group.logs}
    seeds = [log.attrs.get("seed") for log in logs]
    values: dict[str, list[Any]] = {
        "log": [os.path.relpath(log.path, root) for log in logs],
        "method.name": [str(log.attrs.get("method") or "") for log in logs],
        "compressor.name": [str(log.attrs.get("compressor") or "") for log in logs],
        "seed": [seed if isinstance(seed, int) else None for seed in seeds],
        "label": [labels[log.path] for log in logs],
        "n": [log.n for log in logs],
        "status": [str(log.attrs.get("status", "unknown")) for log in logs],
        "stepsize": [log.attrs.get("stepsize") for log in logs],
    }
    kinds = columns([log.config for log in logs], every)
    values |= {name: cells for name, cells in kinds.items() if name not in HELD}
    return {name: _array(cells) for name, cells in values.items()}


def _array(values: Sequence[Any]) -> np.ndarray:
    """Numbers, with NaN for None where one is missing; else texts, with "" for None."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else value for value in values], object)
    return np.array(values, float if None in values else None)


def to_csv(rows: Rows) -> bytes:
    """The rows as CSV, numbers with all digits."""
    columns = [values.tolist() for values in rows.values()]
    return (table(list(rows), zip(*columns, strict=True), "csv") + "\n").encode()


def to_parquet(rows: Rows) -> bytes:
    """The rows as Parquet, by pyarrow, else polars; `InputError` where there is neither."""
    columns = {n: list(map(str, v)) if v.dtype == object else v for n, v in rows.items()}
    out = io.BytesIO()
    if importlib.util.find_spec("polars") and not importlib.util.find_spec("pyarrow"):
        library("polars", "parquet", "--parquet").DataFrame(columns).write_parquet(out)
        return out.getvalue()
    arrow = library("pyarrow", "parquet", "--parquet")
    library("pyarrow.parquet", "parquet", "--parquet").write_table(arrow.table(columns), out)
    return out.getvalue()
