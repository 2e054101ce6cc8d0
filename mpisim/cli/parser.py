"""What sub-commands share: the parser, the arguments of an experiment, and the start of a job."""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mpisim.cli.examples import EXAMPLES
from mpisim.core.errors import SYNONYMS, InputError, plain
from mpisim.core.launcher import launched
from mpisim.core.machine import usable_cores

if TYPE_CHECKING:
    from mpisim.runs.sweep.points import Spread


class Parser(argparse.ArgumentParser):
    """Raises a mistake as `InputError`, one line like every other bad input.

    Its help ends with the command's examples.
    """

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}{_as_setting(message)} (see {self.prog} --help)")

    def format_help(self) -> str:
        examples = "".join(f"  {line}\n" for line in EXAMPLES.get(self.prog, ()))
        return super().format_help() + (examples and f"\nexamples:\n{examples}")


def _as_setting(message: str) -> str:
    """``; did you mean --set run.rounds=100?`` for an unknown option that is a key."""
    _, unknown, words = message.partition("unrecognized arguments: --")
    if not unknown:
        return ""
    from mpisim.runs.experiment import tables_of_keys  # for mistakes only

    flag, _, value = words.replace("=", " ", 1).partition(" ")
    name = flag.replace("-", "_")
    keys = {
        (f"{table}.name" if key == table else f"{table}.{key}")
        for table, kinds in tables_of_keys().items()
        for _, kind in kinds
        for key in (*(field.name.rstrip("_") for field in dataclasses.fields(kind)), table)
        if key in (name, SYNONYMS.get(plain(name)))
    }
    given = value.split(" ")[0] or "VALUE"
    return f"; did you mean --set {min(keys)}={given}?" if keys else ""


VALUES = {
    **dict.fromkeys(("FILE", "FOLDER", "LOG", "FILE.toml", "LOG.h5"), Path),
    **{"N": int, "R": int, "E": float, "WIDTH": float},
}
SET = "--set TABLE.KEY=VALUE ..."
PLUGIN = {
    "--plugin MODULE|FILE.py ...": "import your own compressors, methods, problems, ...; repeatable"
}
EXPERIMENT = {
    "file [FILE.toml]": "the experiment file",
    SET: "set a key; wins over the file; repeatable",
} | PLUGIN
ACCEPT = {
    "--accept-changes": "keep and continue what other code, libraries or processors have computed"
}
LOGS = {"logs LOG ...": "a log, a folder of logs, or a pattern such as 'logs/*.h5'"}
SELECT = {
    "--where CONDITION ...": "take only runs that meet this: 'compressor.k == 10', 'seed < 3';"
    " repeatable",
    "--best RULE": "of each setting take only the best step, as `mpisim tune` picks it (default"
    " rule: mean)",
}
BEST = {"nargs": "?", "const": "mean"}
FRAMING = {"--framing": "add framing to payload bits: headers, lengths and padding"}


def arguments(
    parser: argparse._ActionsContainer, forms: Mapping[str, str], **more: Mapping[str, Any]
) -> None:
    """Add arguments from their forms and helps.

    A form is an option with the names of its values (``-o --out FILE``, ``--size WIDTH HEIGHT``),
    none for a switch, and dots where it may be repeated (``--set TABLE.KEY=VALUE ...``). Or it is a
    positional argument: its name in Python, then ``LOG``, ``[LOG]`` for one that may be missing, or
    ``LOG ...`` for one or more. `VALUES` has the types. ``more`` has further keywords of argparse
    for arguments by their names in Python.
    """
    for form, text in forms.items():
        words = form.split()
        flags = [word for word in words if word.startswith("-")]
        name, *values = (
            words if not flags else [flags[min(len(flags), 2) - 1], *words[len(flags) :]]
        )
        many = values[-1:] == ["..."]
        metavars = tuple(value.strip("[]") for value in values if value != "...")
        how: dict[str, Any] = {"help": text}
        if not metavars:
            how["action"] = "store_true"
        else:
            how["metavar"] = metavars if len(metavars) > 1 else metavars[0]
            how["type"] = VALUES.get(metavars[0], str)
        if len(metavars) > 1:
            how["nargs"] = len(metavars)
        elif many:
            how |= {"action": "append", "default": []} if flags else {"nargs": "+"}
        elif values and values[0].startswith("["):
            how["nargs"] = "?"
        name = flags[1] if len(flags) > 1 else words[0]
        how |= more.get(name.strip("-").replace("-", "_"), {})
        parser.add_argument(*(flags or words[:1]), **how)


def refuse(args: argparse.Namespace, names: Iterable[str], where: str) -> None:
    """`InputError` for the first of these options that was given: it has no meaning ``where``."""
    for name in names:
        if getattr(args, name):
            flag = getattr(args, name) if name == "form" else name.replace("_", "-")
            raise InputError(f"--{flag}: is not allowed {where}")


def add_spread(parser: argparse.ArgumentParser) -> None:
    """Add --ranks-per-run and --jobs: how the points of a grid are dealt to processes."""
    arguments(
        parser,
        {
            "--ranks-per-run R": "give each point R of mpirun's ranks, and run points side by side"
            " (default: 1)",
            "--jobs N|auto": "without mpirun: run points side by side in N processes; auto: one for"
            " each core",
        },
        ranks_per_run={"default": 1},
        jobs={"type": _jobs, "default": 0},
    )


def _jobs(text: str) -> int:
    number = len(usable_cores()) if text == "auto" else int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be at least 1 or auto")
    return number


def spread_of(args: argparse.Namespace) -> Spread:
    """What --ranks-per-run, --jobs and, where there is one, --shard say."""
    from mpisim.runs.sweep.points import Shard, Spread

    return Spread(args.ranks_per_run, args.jobs, getattr(args, "shard", Shard()))


def command_line(argv: list[str]) -> str:
    """The command as a shell takes it, for the log: text in UTF-8."""
    return os.fsencode(shlex.join(["mpisim", *argv])).decode(errors="replace")


def on_all_ranks(args: argparse.Namespace, body: Callable[..., int]) -> int:
    """Load the plugins and call ``body`` on all ranks; the exit code."""
    require_mpi()
    from mpisim.runs import plugins
    from mpisim.runs.host import guarded

    def with_plugins(comm) -> int:
        plugins.load(args.plugin)
        return body(comm)

    return guarded(with_plugins)


def run_sweeps(args: argparse.Namespace, body: Callable[..., int]) -> int:
    """`on_all_ranks`; with --jobs, which forks processes, MPI must not start."""
    if args.jobs and launched():
        raise InputError("--jobs: is for one process; under mpirun the ranks run side by side")
    return on_all_ranks(args, body)


def prepare_mpi() -> None:
    """Let MPI start where it is imported in a job of mpirun, by a plugin say; elsewhere not."""
    import mpi4py

    mpi4py.rc.initialize = launched()


def require_mpi() -> None:
    """Start MPI in a job of mpirun, the only one that uses it.

    `InputError` if that fails, because mpi4py has found no library, say.
    """
    prepare_mpi()
    if not launched():
        return
    try:
        from mpi4py import MPI  # noqa: F401
    except (ImportError, RuntimeError, OSError) as error:
        raise InputError(
            f"MPI cannot be loaded: {error}; allowed: one that `mpisim --info` finds, see"
            " docs/install.md"
        ) from None
