"""The sub-command `mpisim plot`: a figure, or with --out FILE.html a page for the browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mpisim.cli.parser import BEST, FRAMING, LOGS, SELECT, arguments, refuse
from mpisim.core.errors import InputError

PAGE = ".html"
OF_AXES = ("xlim", "ylim", "xlabel", "ylabel")
OF_PLAIN_CURVES = ("x", "y", "linear_x", "linear_y", "all_workers", "framing", *OF_AXES)
OF_CURVES = (*OF_PLAIN_CURVES, "network")
OF_FIGURES = (*OF_PLAIN_CURVES, "size", "svg", "breakdown")
ABOUT = (
    "Draw curves from logs. Runs that differ only in the seed make one curve: the mean of log y"
    " over the seeds, with a band of one sample standard deviation of log y on each side. With"
    " --linear-y mean and band are those of y. A single run has no band. With --out FILE.html"
    " write a page that needs no network: curves over rounds, bits, measured and modelled seconds,"
    " settings, tables, seconds by phase, provenance. It has the logs of a folder and of the"
    " folders in it."
)


ARGUMENTS = {
    **LOGS,
    **SELECT,
    "-o --out --output FILE": "write the figure here: .png, .pdf or .svg; or a page: .html",
    "--svg": "also write the figure as .svg",
    "--x COLUMN": "draw over this column, seconds or bits_total (default: bits_up)",
    "--y COLUMN": "draw this column (default: grad_norm_sq)",
    "--network RATE,LATENCY ...": "draw over seconds modelled for a network: 100mbit,1ms; see"
    " docs/how-to/netlab.md; for a page repeatable (default: 10mbit, 100mbit, 1gbit)",
    "--target COLUMN=LEVEL ...": "for a page: count costs until this, as `mpisim show` does;"
    " repeatable (default: powers of ten of grad_norm_sq)",
    "--breakdown": "draw bars: the seconds of a round by phase",
    "--linear-x": "use a linear x axis",
    "--linear-y": "use a linear y axis",
    "--all-workers": "sum bits and gradients over workers, instead of showing them per worker",
    **FRAMING,
    "--xlim LOW HIGH": "limit the x axis; auto leaves a side to the data",
    "--ylim LOW HIGH": "limit the y axis; auto leaves a side to the data",
    "--xlabel TEXT": "label the x axis",
    "--ylabel TEXT": "label the y axis",
    "--title TITLE": "set the title (default: what the logs share; of a page, the folder)",
    "--size WIDTH HEIGHT": "set the size of the page in inches (default: 6 4.2, and more if the"
    " legend needs it)",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = ABOUT
    limit = {"type": _limit}
    arguments(parser, ARGUMENTS, out={"required": True}, xlim=limit, ylim=limit, best=BEST)
    parser.set_defaults(command=plot_command)


def _limit(text: str) -> float | None:
    return None if text == "auto" else float(text)


_limit.__name__ = "number or auto"  # argparse names it in its message


def plot_command(args: argparse.Namespace, argv: list[str]) -> int:
    if args.out.suffix.lower() == PAGE:
        refuse(args, OF_FIGURES, "for a page, where the reader chooses")
        outputs = [_write_page(args)]
    else:
        refuse(args, ("target",), f"but for a page, --out FILE{PAGE}")
        outputs = _write_figure(args)
    for output in outputs:
        print(output)
    return 0


def _write_figure(args: argparse.Namespace) -> list[Path]:
    from mpisim.analysis.log_files import load
    from mpisim.analysis.plot import check_output, save

    outputs = list(dict.fromkeys([args.out] + [args.out.with_suffix(".svg")] * args.svg))
    for output in outputs:
        check_output(output)
    if args.breakdown:
        refuse(args, OF_CURVES, "with --breakdown, which draws no curves")
        from mpisim.analysis.breakdown import draw as draw_bars
        from mpisim.analysis.select import selected

        logs = selected(load(args.logs), args.where, args.best)
        figure = draw_bars(logs, args.title, args.size)
    else:
        figure = _curves(args)
    for output in outputs:
        save(figure, output)
    return outputs


def _curves(args: argparse.Namespace) -> Any:
    from mpisim.analysis.api import plot
    from mpisim.comm.links import parse

    if len(args.network) > 1:
        raise InputError("--network: may be repeated for a page alone; a figure shows one network")
    return plot(
        args.logs,
        args.x or ("seconds" if args.network else "bits_up"),
        args.y or "grad_norm_sq",
        per_worker=not args.all_workers,
        linear_x=args.linear_x or None,
        linear_y=args.linear_y,
        title=args.title,
        network=parse(args.network[0]) if args.network else None,
        framing=args.framing,
        size=args.size,
        where=args.where,
        best=args.best or False,
        **{name: getattr(args, name) for name in OF_AXES},
    )


def _write_page(args: argparse.Namespace) -> Path:
    from mpisim.analysis.commands import NETWORKS, report

    how = args.network or NETWORKS, args.target, args.title or "", args.where, args.best
    return report(args.logs, args.out, *how)
