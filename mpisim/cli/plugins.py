"""`mpisim new`: plugins, studies and jobs from templates; and `mpisim check` of plugins."""

from __future__ import annotations

import argparse
import shlex

from mpisim.analysis.study.load import create as create_study
from mpisim.cli.entry import require_mpi
from mpisim.runs.host import guarded
from mpisim.testing import check as check_plugins
from mpisim.testing.moments import DRAWS, ERROR_RATE
from mpisim.testing.new import create, create_job

# What an experiment with each kind of plugin has.
SETTINGS = {
    "compressor": "compressor.name={} --set compressor.k=10",
    "estimator": "method.name={}",
    "method": "method.name={}",
    "problem": "problem.name={}",
    "metric": "'run.columns=[\"{}\"]'",
}


def new(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim new compressor|estimator|method|problem|metric``."""
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
    return 0


def new_study(args: argparse.Namespace, argv: list[str]) -> int:
    for path in create_study(args.folder):
        print(path)
    print(f"\nmpisim study {args.folder}         # its figures")
    print(f"mpisim study {args.folder} fig1    # run, draw")
    return 0


def new_job(args: argparse.Namespace, argv: list[str]) -> int:
    file = create_job(args.file)
    print(f"{file}\n\nsbatch {file} run first.toml --out logs/first.h5")
    print(f"sbatch --array=1-8 --nodes=1 --ntasks=1 {file} sweep grid.toml")
    return 0


def check(args: argparse.Namespace, argv: list[str]) -> int:
    """Print a line for each check; 1 if one failed."""
    require_mpi()

    def body(comm) -> int:
        outcomes = check_plugins(args.plugins, comm, lambda one: print(one, flush=True))
        failed = sum(one.failed for one in outcomes)
        skipped = sum(one.status == "not checked" for one in outcomes)
        if comm.rank == 0:
            print(f"{len(outcomes)} checks: {failed} failed, {skipped} not applicable")
            if any(one.subject.startswith("compressor ") for one in outcomes):
                rate = f"a right compressor fails in at most {ERROR_RATE:g} of all cases"
                print(f"omega, alpha, zeta: by {DRAWS} draws; {rate}")
        return int(comm.bcast(failed) > 0)

    return guarded(body)
