"""What the command line does with logs, studies and compressors, from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis import card as cards
from mpisim.analysis import costs, log_files, results
from mpisim.analysis.artifact import examine_archive, is_archive, write
from mpisim.analysis.claims import SUFFIX, Studies, read_folder
from mpisim.analysis.fleet_table import FleetCosts, of_logs
from mpisim.analysis.formatting import Text
from mpisim.analysis.log_files import Logs, PathLike
from mpisim.analysis.study import Job, load
from mpisim.analysis.study.figure import Drawn, draw, known_studies
from mpisim.analysis.verify import Check, examine
from mpisim.comm.communicators import all_ranks
from mpisim.comm.fleet import built_fleets
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError, MpisimError
from mpisim.runs import plugins
from mpisim.runs.log.reader import read
from mpisim.runs.sweep.points import Spread, exit_code


def fleet(
    paths: Logs,
    fleets: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] = (),
    target: float | str | Sequence[float | str] = (),
    y: str = "grad_norm_sq",
    draws: int = 20,
) -> FleetCosts:
    """The seconds until a target on fleets of clients, as ``mpisim fleet`` prints them.

    paths : as for `mpisim.load`, or the runs that it has read
    fleets : links such as "mlab:US", or tables ``[fleet]``; those of the logs unless given
    target : as for `mpisim.table`; the end of the shortest run unless given
    draws : of each fleet's clients
    """
    logs = log_files.load(paths)
    return FleetCosts(logs, built_fleets(fleets or of_logs(logs)), costs.targets(target, y), draws)


class Verified(list[Check]):
    """The checks of a log; true if none has failed."""

    def __bool__(self) -> bool:
        return not any(check.problems for check in self)

    def __repr__(self) -> str:
        return "\n".join(map(str, self))


def verify(
    log: PathLike,
    rerun: bool = False,
    plugin: Sequence[str] = (),
    comm: Any = None,
    trusted: bool = False,
) -> Verified:
    """The checks of ``mpisim verify``; with ``rerun`` the run is repeated, too. Collective.

    log : a log, or an archive of `artifact`
    plugin : modules and files with what the log's experiment needs beyond mpisim
    trusted : whether code that the log or the archive names may be executed
    """
    used = comm or all_ranks()
    if on_first(used, lambda: is_archive(Path(log))):
        return Verified(examine_archive(Path(log), rerun, trusted, used))
    plugins.load(list(plugin))
    read_log = on_first(used, lambda: read(Path(log), changed=True))
    if trusted:
        plugins.load(read_log.config.get("plugin", []))
    return Verified(examine(read_log, rerun, trusted or bool(plugin), used))


def study(
    folder: PathLike,
    figure: str,
    scale: str = "quick",
    jobs: int = 0,
    accept_changes: bool = False,
    comm: Any = None,
) -> Drawn:
    """Run what a figure of a study lacks, draw it and judge its claims. Collective.

    Returns the figure, whose ``picture`` is a matplotlib figure, and its ``claims``.
    """
    used, loaded = comm or all_ranks(), load(Path(folder))
    chosen = loaded.figure(figure)
    how = used, "mpisim.study", accept_changes, Spread(jobs=jobs)
    if exit_code(chosen.source.complete(Job(loaded.folder, scale, *how))):
        raise MpisimError(f"{loaded.full_name(chosen)}: not all of its runs have ended well")
    return draw(loaded, chosen)


def artifact(folder: PathLike, output: PathLike | None = None) -> Path:
    """Write one archive of a study on record, as ``mpisim artifact`` does; returns its path."""
    loaded = load(Path(folder))
    return write(loaded, Path(output or f"{loaded.folder.resolve().name}.zip"))


def claims(folder: PathLike) -> Studies:
    """{study: {figure: claims}} of a study, or of a folder of pictures or of results."""
    judged, errors = read_claims(Path(folder))
    if errors:
        raise errors[0]
    return judged


def read_claims(folder: Path) -> tuple[Studies, list[InputError]]:
    """{study: {figure: claims}}, of results {study and scale: {figure: claims}}; and errors."""
    places = [folder, folder / results.FOLDER, *sorted(folder.glob(f"*/{results.FOLDER}"))]
    recorded = [result for place in places for result in results.read(place)]
    if recorded:
        return results.by_scale(recorded), []
    judged, errors = read_folder(folder, known_studies())
    if not judged and not errors:
        raise InputError(f"{folder}: no *{SUFFIX} there; draw a figure of a study first")
    return judged, errors


def card(name: str, d: int | Sequence[int] = 1000, **keys: Any) -> Text:
    """What ``mpisim card`` prints of a compressor with these keys, in one dimension or several."""
    dimensions = [d] if isinstance(d, int) else list(d)
    return Text("\n".join(cards.lines({"name": name, **keys}, dimensions)))
