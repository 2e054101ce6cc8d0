"""The sub-command `mpisim fleet`: what a run would take if each client had a link of its own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mpisim.cli.parser import LOGS, arguments
from mpisim.cli.show import FORMS, add_forms
from mpisim.core.errors import InputError

if TYPE_CHECKING:
    from mpisim.comm.fleet import Fleet
    from mpisim.runs.log.reader import Log

ABOUT = (
    "Print the seconds until a target on fleets of clients: p5, median and p95 over the runs' seeds"
    " and draws of the fleet. Each client has its own link and speed, and a round waits for the"
    " slowest; docs/concepts/fleet.md has the model."
)
ARGUMENTS = {
    **LOGS,
    "--fleet LINKS|FILE.toml ...": "mlab:US, mlab:world, a link such as 10mbit/50mbit,20ms, or a"
    " file with a table [fleet]; repeatable (default: the table [fleet] of each log)",
    "--set fleet.KEY=VALUE ...": "set a key of all fleets: fleet.deadline=60; repeatable",
    "--target COLUMN=LEVEL ...": "until this is met: grad_norm_sq=1e-3; repeatable (default: the"
    " end of the run)",
    "--draws N": "fleets to draw, with the seeds from fleet.seed on (default: 20)",
    "--fedscale MS": "use FedScale's formula, 3 x batch x steps x MS + bytes / bandwidth",
    "-o --out FILE": "also draw a picture: .png, .pdf or .svg",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = ABOUT
    arguments(parser, ARGUMENTS, draws={"default": 20}, fedscale={"type": float})
    add_forms(parser, FORMS)
    parser.set_defaults(command=fleet_command)


def fleet_command(args: argparse.Namespace, argv: list[str]) -> int:
    from mpisim.analysis import log_files
    from mpisim.analysis.costs import Target, parse
    from mpisim.analysis.fleet.table import draw, fleet_costs, fleet_table
    from mpisim.analysis.plot import check_output, save

    if args.draws < 1:
        raise InputError(f"--draws: {args.draws} is not allowed; it must be an integer >= 1")
    if args.fedscale is not None and not 0 <= args.fedscale < float("inf"):
        raise InputError(f"--fedscale: {args.fedscale} is not allowed; it must be a number >= 0")
    if args.out:
        check_output(args.out)
    logs = list(log_files.load(args.logs))
    fleets = _fleets(args, logs)
    if args.target:
        targets = [parse(text) for text in args.target]
    else:
        last = min(int(log.columns["round"][-1]) for log in logs if log.rows)
        targets = [Target("round", last, rises=True)]
    costs = fleet_costs(logs, fleets, targets, args.draws, args.fedscale)
    print(fleet_table(logs, costs, args.draws, args.form or "text"))
    if args.out:
        save(draw(logs, costs), args.out)
        print(f"wrote {args.out}")
    return 0


def _fleets(args: argparse.Namespace, logs: list[Log]) -> list[Fleet]:
    """Those of --fleet, or the logs' own, with the keys of --set."""
    from pathlib import Path

    from mpisim.comm.fleet import Fleet
    from mpisim.core.schema import build
    from mpisim.runs.experiment import apply, read_toml

    tables: list[dict[str, Any]] = []
    for text in args.fleet:
        if not text.endswith(".toml"):
            tables.append({"links": text})
            continue
        file = read_toml(Path(text))
        if not isinstance(file.get("fleet"), dict):
            raise InputError(f"{text}: has no table [fleet]")
        tables.append(file["fleet"])
    own = [log.config["fleet"] for log in logs if "fleet" in log.config]
    tables = tables or [table for i, table in enumerate(own) if table not in own[:i]]
    if not tables:
        raise InputError("--fleet: is needed, because no log has a table [fleet]; try mlab:world")
    for setting in args.set:
        changed: dict[str, Any] = {}
        apply(changed, setting)
        if changed.keys() != {"fleet"}:
            raise InputError(f"--set {setting}: a fleet has keys of its own alone, fleet.KEY=VALUE")
        tables = [table | changed["fleet"] for table in tables]
    return [build(Fleet, table, "fleet") for table in tables]
