"""`mpisim methods`, `compressors`, `problems`: what there is, a line each; and `mpisim card`.

Also `mpisim new`: plugins, studies and jobs from templates; and `mpisim check` of plugins.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import shlex
import shutil
import sys
import typing
from io import BytesIO

from mpisim.analysis.formatting import columns
from mpisim.cli.entry import on_first_rank, require_mpi, settings_of
from mpisim.compressors import COMPRESSORS
from mpisim.core.errors import InputError
from mpisim.core.files import write_file
from mpisim.core.schema import choose, describe
from mpisim.core.state import PLACES
from mpisim.core.terminal import is_terminal
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems import PROBLEMS
from mpisim.runs.host import guarded

Kinds = dict[str, tuple[type, ...]]
# What an experiment with each kind of plugin has.
SETTINGS = {
    "compressor": "compressor.name={} --set compressor.k=10",
    "estimator": "method.name={}",
    "method": "method.name={}",
    "problem": "problem.name={}",
    "metric": "'run.columns=[\"{}\"]'",
}
PICTURES = (".png", ".pdf", ".svg", ".html")  # of a card


def list_names(args: argparse.Namespace) -> int:
    """``mpisim methods``, ``compressors`` or ``problems``."""
    table = args.words[0]
    return on_first_rank(args, lambda: print(_text(args.name, table[:-1], _kinds(table))))


def _kinds(table: str) -> Kinds:
    """{name: its classes, two of a method}."""
    if table == "methods":
        return {n: (ESTIMATORS[m.estimator], OPTIMIZERS[m.optimizer]) for n, m in METHODS.items()}
    parts = COMPRESSORS if table == "compressors" else PROBLEMS
    return {name: (kind,) for name, kind in parts.items()}


def _text(name: str | None, table: str, kinds: Kinds) -> str:
    """A line for each name; of one name its documentation, keys and state."""
    if name is None:
        lines = columns([[one, _line(one, half)] for one, half in sorted(kinds.items())], indent="")
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        return "\n".join(line[:width] for line in lines.splitlines())
    halves = choose(kinds, name, table)
    texts = [inspect.getdoc(half) or "" for half in halves]
    kept = [
        [state, PLACES[one.place], one.meaning]
        for half in halves
        for state, one in getattr(half, "declared", {}).items()
    ]
    tables = {f"{table} keys": _keys(halves), "kept between rounds": kept}
    texts += [f"{head}\n{columns(rows)}" for head, rows in tables.items() if rows]
    return "\n\n".join(texts)


def _line(name: str, halves: tuple[type, ...]) -> str:
    """The first lines of the documentation.

    For a method that is a pair: its name in figures, and the rule of its step if that is not GD's.
    """
    estimator, *optimizer = halves
    others = [half for half in optimizer if half.name not in ("gd", estimator.name)]  # type: ignore[attr-defined]
    lines = [(inspect.getdoc(half) or "").split("\n\n")[0] for half in (estimator, *others)]
    text = "; ".join(" ".join(line.split()).rstrip(".") for line in lines if line)
    paired = optimizer and estimator.name != name  # type: ignore[attr-defined]
    return f"{METHODS[name].label}: {text}" if paired else text


def _keys(halves: tuple[type, ...]) -> list[list[str]]:
    """Key, what it allows, and its default."""
    return [
        [
            field.name.rstrip("_"),
            describe(typing.get_type_hints(half)[field.name]),
            "required" if field.default is dataclasses.MISSING else f"default {field.default!r}",
        ]
        for half in halves
        for field in dataclasses.fields(half)
        if field.init
    ]


def card(args: argparse.Namespace) -> int:
    if args.out and args.out.suffix.lower() not in PICTURES:
        raise InputError(f"--out: {str(args.out)!r} does not end in {', '.join(PICTURES)}")
    return on_first_rank(args, lambda: _write_card(args))


def _write_card(args: argparse.Namespace) -> None:
    from mpisim.analysis import card, plot, style

    spec = {"name": args.name} | settings_of(args, "compressor", "a card")
    out, dimensions = args.out, list(dict.fromkeys(args.d)) or [1000]
    if out:
        style.check_installed()
    given = card.vectors_of(args.vectors) if args.vectors else None
    if given is not None:
        dimensions = list(dict.fromkeys([*dimensions, given.shape[1]]))
    text = "\n".join(card.lines(spec, dimensions, given))
    print(text, flush=True)
    if out and out.suffix.lower() == ".html":
        picture = BytesIO()
        card.chart(dimensions[0], spec).savefig(picture, format="png")
        write_file(out, card.page(text, picture.getvalue()).encode(), InputError)
    elif out:
        plot.save(card.chart(dimensions[0], spec), out)
    if out:
        print(f"wrote {out}")


def new(args: argparse.Namespace) -> None:
    """Run ``mpisim new compressor|estimator|method|problem|metric``."""
    from mpisim.testing.new import create

    kind = args.words[-1]
    plugin, test = create(kind, args.name, args.folder, getattr(args, "like", ""))
    settings = SETTINGS[kind].format(args.name)
    print(f"{plugin}\n{test}\n")
    file = shlex.quote(str(plugin))
    for command, text in (
        (f"mpisim check {file}", "does it keep its promises"),
        (f"python -m pytest {shlex.quote(str(test))}", "the same, and tests of its own"),
        (f"mpisim run --plugin {file} --set {settings} ...", "use it"),
    ):
        print(f"{command:<64} # {text}")


def new_study(args: argparse.Namespace) -> None:
    from mpisim.analysis.study.figure import create

    for path in create(args.folder):
        print(path)
    print(f"\nmpisim study {args.folder}         # its figures")
    print(f"mpisim study {args.folder} fig1    # run, draw")


def new_job(args: argparse.Namespace) -> None:
    from mpisim.testing.new import create_job

    file = create_job(args.file)
    print(f"{file}\n\nsbatch {file} run first.toml --out logs/first.h5")
    print(f"sbatch --array=1-8 --nodes=1 --ntasks=1 {file} sweep grid.toml")


def check_plugins(args: argparse.Namespace) -> int:
    """Print a line for each check; 1 if one failed."""
    from mpisim.testing import check

    require_mpi()

    def body(comm) -> int:
        outcomes = check(args.plugins, comm, lambda one: print(one, flush=True))
        failed = sum(one.failed for one in outcomes)
        skipped = sum(one.status == "not checked" for one in outcomes)
        if comm.rank == 0:
            print(f"{len(outcomes)} checks: {failed} failed, {skipped} not applicable")
        return int(comm.bcast(failed) > 0)

    return guarded(body)
