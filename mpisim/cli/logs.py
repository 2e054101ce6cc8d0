"""`mpisim show`, `plot`, `export`, `fleet` and `verify`: what is read off logs."""

from __future__ import annotations

import argparse
import shutil
import sys
from math import inf
from pathlib import Path
from typing import Any

import mpisim.analysis as analysis
from mpisim.analysis.costs import Costs, parse
from mpisim.analysis.curves import LABELS
from mpisim.analysis.formatting import table
from mpisim.analysis.show import fitted, in_order, run_list
from mpisim.cli.entry import on_all_ranks, settings_of
from mpisim.cli.parser import refuse
from mpisim.comm.fleet import Fleet, built_fleets
from mpisim.comm.links import parse as links
from mpisim.core.errors import InputError
from mpisim.core.files import write_file
from mpisim.core.schema import require
from mpisim.core.terminal import is_terminal
from mpisim.runs.experiment import read_toml
from mpisim.runs.log.reader import Log

OF_LISTS = ("sort", "reverse", "all_settings")
OF_AXES = ("xlim", "ylim", "xlabel", "ylabel")
OF_PLAIN_CURVES = ("x", "y", "linear_x", "linear_y", "all_workers", "framing", *OF_AXES)
OF_CURVES = (*OF_PLAIN_CURVES, "network")
OF_FIGURES = (*OF_PLAIN_CURVES, "size", "svg", "breakdown")
PAGE = ".html"
ROWS = (".csv", ".parquet")


def show(args: argparse.Namespace) -> None:
    """Print the page of one log, the list of several, or what they cost until targets."""
    find = analysis.log_files
    if args.siunitx and args.form != "latex":
        raise InputError("--siunitx: is not allowed without --latex")
    first, alone = args.logs[0], len(args.logs) == 1
    if args.target:
        refuse(args, OF_LISTS, "with --target")
        targets = [parse(text) for text in args.target]
        network = None if args.network is None else links(args.network)
        costs = Costs(_selected(args, find.load(args.logs)), targets, network, args.framing)
        print(costs.to_text(args.form or "text", args.siunitx))
        return
    below = first if alone and first.is_dir() else None
    paths = find.below(below) if below else find.find(args.logs)
    if below is None and alone and len(paths) == 1:
        refuse(args, (*OF_LISTS, "form", "network", "where", "best", "siunitx"), "for one log")
        print(analysis.show.show_text(paths[0], args.framing))
        return
    refuse(args, ("framing", "network"), "for a list of runs")
    print(_list(args, _selected(args, find.readable(paths)[0]), below))


def _selected(args: argparse.Namespace, logs: list[Log]) -> list[Log]:
    return analysis.log_files.selected(logs, args.where, args.best)


def _list(args: argparse.Namespace, logs: list[Log], folder: Path | None) -> str:
    head, rows = run_list(folder, logs, args.all_settings, more=args.form == "csv")
    rows = in_order(head, rows, args.sort, args.reverse)
    if args.form is None and is_terminal(sys.stdout):
        return fitted(head, rows, shutil.get_terminal_size().columns)
    if args.form == "latex":
        head = [LABELS[name] if name in ("loss", "grad_norm_sq") else name for name in head]
    return table(head, rows, args.form or "text", siunitx=args.siunitx)


def plot(args: argparse.Namespace) -> None:
    """Write a figure, or with --out FILE.html a page for the browser."""
    if args.out.suffix.lower() == PAGE:
        refuse(args, OF_FIGURES, "for a page, where the reader chooses")
        from mpisim.analysis.report import NETWORKS, report

        how = args.network or NETWORKS, args.target, args.title or "", args.where, args.best
        outputs = [report(args.logs, args.out, *how, args.fleet)]
    else:
        refuse(args, ("target", "fleet"), f"but for a page, --out FILE{PAGE}")
        outputs = _write_figure(args)
    for output in outputs:
        print(output)


def _write_figure(args: argparse.Namespace) -> list[Path]:
    outputs = list(dict.fromkeys([args.out] + [args.out.with_suffix(".svg")] * args.svg))
    for output in outputs:
        analysis.plot.check_output(output)
    if args.breakdown:
        refuse(args, OF_CURVES, "with --breakdown, which draws no curves")
        logs = _selected(args, analysis.log_files.load(args.logs))
        figure = analysis.plot.draw_bars(logs, args.title, args.size)
    else:
        figure = _curves(args)
    for output in outputs:
        analysis.plot.save(figure, output)
    return outputs


def _curves(args: argparse.Namespace) -> Any:
    if len(args.network) > 1:
        raise InputError("--network: may be repeated for a page alone; a figure shows one network")
    x, y = args.x or ("seconds" if args.network else "bits_up"), args.y or "grad_norm_sq"
    same = ("linear_y", "title", "framing", "size", "where", *OF_AXES)
    how: dict[str, Any] = {name: getattr(args, name) for name in same}
    how |= {"per_worker": not args.all_workers, "linear_x": args.linear_x or None}
    how |= {"network": args.network[0] if args.network else None, "best": args.best or False}
    return analysis.api.plot(args.logs, x, y, **how)


def export(args: argparse.Namespace) -> None:
    files = analysis.log_files
    paths = files.find(args.logs)
    out = _output(args, paths)
    logs = _selected(args, files.readable(paths)[0])
    root = files.folder_of(args.logs, paths)
    write = files.to_csv if out.suffix.lower() == ".csv" else files.to_parquet
    write_file(out, write(files.all_rows(logs, root, args.all_settings)), InputError)
    print(out)


def _output(args: argparse.Namespace, logs: list[Path]) -> Path:
    if args.form is None and args.out is None:
        named = f"--out with a name that ends in {' or '.join(ROWS)}"
        raise InputError(f"--csv or --parquet is needed, or {named}")
    suffixes = ROWS if args.form is None else (f".{args.form}",)
    if args.out is None:
        if len(logs) > 1:
            raise InputError(f"--out: is needed for {len(logs)} logs, which go into one file")
        return logs[0].with_suffix(suffixes[0])
    if args.out.suffix.lower() not in suffixes:
        allowed = " or ".join(suffixes)
        raise InputError(f"--out: {args.out} is not allowed; the name must end in {allowed}")
    return args.out


def fleet(args: argparse.Namespace) -> None:
    """Print what runs would take if each client had a link of its own."""
    from mpisim.analysis.fleet_table import FleetCosts, draw

    ms = args.fedscale
    require(args.draws >= 1, "--draws", args.draws, "an integer >= 1")
    require(ms is None or 0 <= ms < inf, "--fedscale", ms, "a number >= 0")
    if args.out:
        analysis.plot.check_output(args.out)
    logs = analysis.log_files.load(args.logs)
    targets = [parse(text) for text in args.target]
    costs = FleetCosts(logs, _fleets(args, logs), targets, args.draws, ms)
    print(costs.to_text(args.form or "text"))
    if args.out:
        analysis.plot.save(draw(logs, costs), args.out)
        print(f"wrote {args.out}")


def _fleets(args: argparse.Namespace, logs: list[Log]) -> list[Fleet]:
    """Those of --fleet, or the logs' own, with the keys of --set."""
    from mpisim.analysis.fleet_table import of_logs

    tables: list[dict[str, Any]] = []
    for text in args.fleet:
        if not text.endswith(".toml"):
            tables.append({"links": text})
            continue
        file = read_toml(Path(text))
        if not isinstance(file.get("fleet"), dict):
            raise InputError(f"{text}: has no table [fleet]")
        tables.append(file["fleet"])
    changed = settings_of(args, "fleet", "a fleet")
    return built_fleets([table | changed for table in tables or of_logs(logs)])


def verify(args: argparse.Namespace) -> int:
    """0 if all checks pass, 1 if one fails, 2 if there is no log.

    Logs and archives may come from anywhere: what they name is imported only on request.
    """

    def body(comm) -> int:
        from mpisim.analysis.artifact import examine_archive, is_archive
        from mpisim.analysis.verify import examine
        from mpisim.comm.job import on_first
        from mpisim.runs import plugins
        from mpisim.runs.log.reader import read
        from mpisim.runs.stop import EXIT_CODES

        if on_first(comm, lambda: is_archive(args.log)):
            checks = examine_archive(args.log, args.rerun, args.load_plugins, comm)
        else:
            log = on_first(comm, lambda: read(args.log, changed=True))
            if args.load_plugins:
                plugins.load(log.config.get("plugin", []))
            if comm.rank == 0:
                print(f"{log.path}: {log.rows} rows, {log.attrs.get('status', 'unknown')}")
            checks = examine(log, args.rerun, bool(args.plugin or args.load_plugins), comm)
        failed = 0
        for check in checks:
            if check.stopped:
                return EXIT_CODES[check.stopped]
            failed += bool(check.problems)
            if comm.rank == 0:
                print(check, flush=True)
        if comm.rank == 0:
            what = f"{failed} check{'s' * (failed > 1)} failed" if failed else "nothing is wrong"
            print(f"{args.log}: {what}")
        return int(failed > 0)

    return on_all_ranks(args, body)
