"""`mpisim study` and `mpisim artifact`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from random import randrange

from mpisim.analysis.claims import Claim, markdown, overview, sensitivities
from mpisim.analysis.commands import artifact as write_artifact
from mpisim.analysis.commands import read_claims
from mpisim.analysis.repeat import repeat
from mpisim.analysis.results_page import judge_again, record, write_page
from mpisim.analysis.study import Job, Study, find, load
from mpisim.analysis.study.figure import FILE, STUDIES, draw, studies, write_drawn
from mpisim.analysis.study.figure import overview as list_figures
from mpisim.cli.entry import command_line, on_all_ranks
from mpisim.cli.parser import refuse
from mpisim.cli.runs import spread_of
from mpisim.comm.communicators import Comm
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.runs.stop import EXIT_CODES
from mpisim.runs.sweep.points import exit_code

PICTURES = Path("figures")
OF_RUNS = ("jobs", "ranks_per_run", "separate", "accept_changes")
UNUSED = {  # options that do nothing beside another one
    "claims": (*OF_RUNS, "scale", "out"),
    "draw": OF_RUNS,
    "verify": (*OF_RUNS, "scale", "out"),
    "sensitivity": ("markdown",),
}


def study(args: argparse.Namespace) -> int:
    """List studies, or the figures of one; run and draw a figure; print claims."""
    if args.claims is None:
        refuse(args, ("markdown", "sensitivity"), "without --claims")
    if not args.draw:
        refuse(args, ("logs",), "without --draw")
    if args.verify is None:
        refuse(args, ("seed",), "without --verify")
    for name, options in UNUSED.items():
        if getattr(args, name) not in (None, False):
            refuse(args, options, f"with --{name}")
    args.scale, args.out = args.scale or "quick", args.out or PICTURES
    if args.claims is not None:  # its folders may stand before the option, too
        named = filter(None, (args.folder, args.figure))
        return _claims([*map(Path, named), *args.claims] or [PICTURES], args)
    if args.draw:
        return _draw(args)
    args.folder = args.folder or STUDIES
    if args.verify is not None:
        require(args.verify >= 1, "--verify", args.verify, "an integer >= 1")
        require(not args.figure, "--verify: figure", args.figure, "absent: any may be drawn")
        return on_all_ranks(args, lambda comm: _verify(args, comm))
    if args.figure is None:
        refuse(args, ("extras", "ranks", *OF_RUNS), "without a figure")
    if args.figure is None and args.folder.is_dir() and not (args.folder / FILE).exists():
        if args.record:
            raise InputError(f"--record: {args.folder} holds studies; name one of them")
        for study in _studies(args.folder):
            print(f"{study.folder}: {study.title}")
            for figure in study.figures.values():
                print(f"  {study.full_name(figure):<16} {figure.title}")
        return 0
    return on_all_ranks(args, lambda comm: _complete(args, command_line(args.argv), comm))


def artifact(args: argparse.Namespace) -> None:
    path = write_artifact(args.folder, args.out)
    print(f"{path}\n\nmpisim verify {path} --rerun --load-plugins    # elsewhere")


def _draw(args: argparse.Namespace) -> int:
    """Draw OUT/NAME.png and .pdf, write OUT/NAME.claims.json, print the claims."""
    if args.folder is None:
        raise InputError("--draw: needs a figure: STUDY-FIGURE, as `mpisim study` lists it")
    if args.figure is None:
        study, figure = find(str(args.folder))
    else:
        study = load(args.folder)
        figure = study.figure(args.figure)
    print(write_drawn(draw(study, figure, args.logs), args.out))
    return 0


def _claims(folders: Sequence[Path], args: argparse.Namespace) -> int:
    """Print the claims of all figures in the folders, study by study.

    `InputError` after them names the first file that cannot be read.
    """
    by_study: dict[str, dict[str, Sequence[Claim]]] = {}
    refused: list[InputError] = []
    for folder in folders:
        claims, errors = read_claims(folder)
        refused += errors
        for study, figures in claims.items():
            by_study.setdefault(study, {}).update(figures)
    if by_study:
        how = sensitivities if args.sensitivity else markdown if args.markdown else overview
        print(how(by_study))
    if refused:
        raise refused[0]
    return 0


def _studies(folder: Path) -> list[Study]:
    """The study in a folder, or those in its folders."""
    return [load(folder)] if (folder / FILE).exists() else studies(folder)


def _verify(args: argparse.Namespace, comm: Comm) -> int:
    """Run comparisons on record again; 1 if a digit differs, else 0, or the code of a signal."""
    code = 0
    seed = on_first(comm, lambda: args.seed if args.seed is not None else randrange(10**6))
    for study in _studies(args.folder):
        lines, same, stopped = repeat(study, args.verify, seed, comm)
        code |= not same
        if comm.rank == 0:
            print("\n".join(lines), flush=True)
        if stopped:
            return EXIT_CODES[stopped]
    return code


def _complete(args: argparse.Namespace, command: str, comm: Comm) -> int:
    study, code = load(args.folder), 0  # on every rank: it may define compressors of its own
    if args.figure is None:
        text = on_first(comm, lambda: _overview(study, args, comm.size))
    elif args.extras:
        text = study.figure(args.figure).source.extras(study.folder, args.scale)
    elif args.ranks:
        source = study.figure(args.figure).source
        text = str(on_first(comm, lambda: source.ranks(study.folder, args.scale)) or "")
    else:
        code, text = _figure(study, args, command, comm)
    if comm.rank == 0 and text:
        print(text)
    return code


def _overview(study: Study, args: argparse.Namespace, ranks: int) -> str:
    """The list of figures; with --record its results judged again, and their page."""
    if args.record:
        return "\n".join(map(str, [*judge_again(study.folder), write_page(study.folder)]))
    return list_figures(study, args.scale, args.out, ranks)


def _figure(study: Study, args: argparse.Namespace, command: str, comm: Comm) -> tuple[int, str]:
    """Run what a figure lacks, draw it, and put it on record if asked to; code and text."""
    figure, began = study.figure(args.figure), time.monotonic()
    how = comm, command, args.accept_changes, spread_of(args)
    code = exit_code(figure.source.complete(Job(study.folder, args.scale, *how)))
    seconds = time.monotonic() - began

    def drawn() -> str:
        drawing = draw(study, figure)
        text = write_drawn(drawing, args.out)
        paths = record(drawing, args.scale, seconds) if args.record else []
        return "\n".join([text, *([", ".join(map(str, paths))] if paths else [])])

    return code, on_first(comm, drawn) if code == 0 else ""
