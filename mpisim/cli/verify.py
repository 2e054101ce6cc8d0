"""The sub-commands `mpisim verify` and `mpisim artifact`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpisim.cli.parser import PLUGIN, arguments, on_all_ranks
from mpisim.runs.log.reader import read

ARGUMENTS = {
    "log LOG": "a log, or an archive of `mpisim artifact`",
    "--rerun": "also repeat the run, or comparisons of the archive, with or without mpirun",
    **PLUGIN,
    "--load-plugins": "import the plugins that the log names, or the code of the archive's study",
}
ARTIFACT = {
    "folder STUDY": "a study with results on record",
    "-o --out FILE": "write the archive here (default: STUDY.zip)",
}


def add(parser: argparse.ArgumentParser) -> None:
    arguments(parser, ARGUMENTS)
    parser.set_defaults(command=verify_command)


def add_artifact(parser: argparse.ArgumentParser) -> None:
    arguments(parser, ARTIFACT, folder={"type": Path})
    parser.set_defaults(command=artifact_command)


def artifact_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim artifact``: one archive of a study, for others to check and to run again."""
    from mpisim.analysis.commands import artifact

    path = artifact(args.folder, args.out)
    print(f"{path}\n\nmpisim verify {path} --rerun --load-plugins    # elsewhere")
    return 0


def verify_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim verify``: 0 if all checks pass, 1 if one fails, 2 if there is no log.

    A log may come from anywhere, so what it names is imported only on request.
    """

    def body(comm) -> int:
        from mpisim.analysis.verify.archive import examine_archive, is_archive
        from mpisim.analysis.verify.examine import examine
        from mpisim.comm.job import on_first
        from mpisim.runs import plugins
        from mpisim.runs.signals import EXIT_CODES

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
            print(f"{args.log}: {f'{failed} checks failed' if failed else 'nothing is wrong'}")
        return int(failed > 0)

    return on_all_ranks(args, body)
