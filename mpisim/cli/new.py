"""The sub-command `mpisim new`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from mpisim.cli.parser import arguments

# Each kind of plugin: its help, and what an experiment with it has.
PLUGINS = {
    "compressor": ("a compressor", "compressor.name={} --set compressor.k=10"),
    "estimator": ("a method with state, and its step", "method.name={}"),
    "method": ("a method like another one", "method.name={} ..."),
    "problem": ("a problem on data of its own", "problem.name={}"),
    "metric": ("a column of the log, with what it keeps", "'run.columns=[\"{}\"]'"),
}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mpisim new`."""
    kinds = parser.add_subparsers(required=True, metavar="KIND")
    forms = {
        "name NAME": "its name in experiments, and of the file NAME.py",
        "--folder FOLDER": "write the file and its test here (default: .)",
    }
    for kind, (text, _) in PLUGINS.items():
        plugin = kinds.add_parser(kind, help=f"{text}: a file that runs, and its test")
        like = {"--like METHOD": "the method that it starts as (default: fedavg)"}
        arguments(
            plugin,
            forms | (like if kind == "method" else {}),
            folder={"default": Path()},
            **({"like": {"default": "fedavg"}} if kind == "method" else {}),
        )
        plugin.set_defaults(command=new_plugin, kind=kind)
    study = kinds.add_parser("study", help="a folder with a grid of runs, a figure and its claims")
    arguments(study, {"folder FOLDER": "a folder that is new or empty"})
    study.set_defaults(command=new_study)
    job = kinds.add_parser("job", help="a batch script for Slurm: runs, and shares of sweeps")
    arguments(job, {"file [FILE]": "write it here (default: job.sbatch)"})
    job.set_defaults(command=new_job, file=Path("job.sbatch"))


def new_plugin(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim new compressor|estimator|method|problem|metric``."""
    from mpisim.testing.new import create

    plugin, test = create(args.kind, args.name, args.folder, getattr(args, "like", ""))
    settings = PLUGINS[args.kind][1].format(args.name)
    print(f"{plugin}\n{test}\n")
    file = shlex.quote(str(plugin))
    for command, text in (
        (f"mpisim check {file}", "does it keep its promises"),
        (f"python -m pytest {shlex.quote(str(test))}", "the same, and tests of its own"),
        (f"mpisim run --plugin {file} --set {settings} ...", "use it"),
    ):
        print(f"{command:<64} # {text}")
    return 0


def new_study(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim new study``."""
    from mpisim.analysis.study.load import create

    for path in create(args.folder):
        print(path)
    print(f"\nmpisim study {args.folder}         # its figures")
    print(f"mpisim study {args.folder} fig1    # run, draw")
    return 0


def new_job(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim new job``."""
    from mpisim.testing.new import create_job

    file = create_job(args.file)
    print(f"{file}\n\nsbatch {file} run first.toml --out logs/first.h5")
    print(f"sbatch --array=1-8 --nodes=1 --ntasks=1 {file} sweep grid.toml")
    return 0
