"""Figures of the papers: for each the module that draws it and checks its claims.

A module has ``SCALES``, {name: settings over run/NAME.toml, as for ``mpisim sweep --set``},
``draw(logs)``, a matplotlib figure, and ``claims(logs)``, a list of `mpisim.analysis.claims.Claim`;
both from logs alone. A new figure is such a module, a line here, and run/NAME.toml.

Logs are in logs/NAME. Figures that show the same runs name their grid in ``GRID``, which then
stands for NAME in run/NAME.toml and logs/NAME: the first of them runs it, each draws its part. A
figure that shows no runs has ``read(folder)`` for what its run/NAME.py (with ``_`` for ``-``)
measured.

``FILES``, {scale: stem of the file under run/}, where that is neither; ``METHODS``, the methods of
that file that are run, where not all are; ``INSTEAD``, {data: other data}, what is taken where a
data set is not here. Several figures in one module are objects with these attributes.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpisim.core.errors import InputError

if TYPE_CHECKING:
    from mpisim.runs.log.reader import Log

FIGURES = {
    "marina-fig1": "marina_fig1",
    "cdadam-fig2": "cdadam_fig2",
    "cdadam-fig4": "cdadam_fig4",
    "saq-fig3": "saq_fig3",
    "saq-fig4": "saq_fig4",
    "saq-fig5": "saq_fig5",
    "saq-fig6": "saq_fig6",
    "saq-fig7": "saq_fig7",
    "saq-fig8": "saq_fig8",
    "saq-table2": "saq_table2",
    "netlab-crossover": "netlab_crossover",
    "permk-fig1": "permk_fig1",
    "permk-fig2": "permk_fig2",
    "permk-fig3": "permk_fig3",
    "permk-fig4": "permk_fig4",
    "permk-fig5": "permk_fig5",
    "permk-fig6": "permk_fig6",
    "permk-fig7": "permk_fig7",
    "permk-fig8": "permk_fig8",
    "permk-fig9": "permk_fig9",
    "permk-fig10": "permk_fig10",
    "permk-mg": "permk_mg",
    "permk-table5": "permk_table5",
    "cdadam-fig1": "cdadam_images:FIG1",
    "cdadam-fig3": "cdadam_images:FIG3",
    "cdadam-fig5": "cdadam_images:FIG5",
    "cdadam-fig6": "cdadam_images:FIG6",
    "cdadam-fig7": "cdadam_images:FIG7",
    "cdadam-fig8": "cdadam_images:FIG8",
    "cdadam-fig9": "cdadam_images:FIG9",
    "cdadam-fig10": "cdadam_images:FIG10",
    "cdadam-fig11": "cdadam_fig11",
    "cdadam-table2": "cdadam_images:TABLE2",
    "cdadam-pi": "cdadam_images:PI_FIGURE",
    "marina-fig2": "marina_fig2",
}


def load(name: str) -> Any:
    """The module of a figure, or the object in it; `InputError` lists the figures."""
    if name not in FIGURES:
        raise InputError(f"figure {name!r}: unknown; known: {', '.join(FIGURES)}")
    module, _, attribute = FIGURES[name].partition(":")
    loaded = import_module(f"{__name__}.{module}")
    return getattr(loaded, attribute) if attribute else loaded


def grid_name(name: str) -> str:
    """Whose runs a figure shows: its own, or those of a grid that figures share."""
    return str(getattr(load(name), "GRID", name))


def folder_of(name: str) -> Path:
    """Where the logs of a figure are unless said otherwise."""
    return Path("logs") / grid_name(name)


def logs_of(folder: Path) -> tuple[list[Log], list[str]]:
    """The complete logs of a folder, and a line for each run that is not drawn.

    Those of the last sweep in the folder and in each folder below it, or, where none left its
    summary, all. `InputError` without any.
    """
    from mpisim.runs.log.reader import read_experiments
    from mpisim.runs.sweep.points import SUMMARY, read_summary

    swept = [summary.parent for summary in sorted(folder.glob(f"**/{SUMMARY}"))]
    paths = [one / Path(p.log).name for one in swept for p in read_summary(one) if p.log]
    if not swept:
        paths = sorted(folder.glob("*.h5"))
    logs = read_experiments([path for path in paths if path.is_file()])
    done = [log for log in logs if log.attrs.get("status") == "done"]
    if not done:
        raise InputError(f"{folder}: no complete log of a run there")
    left = [f"{log.path}: not drawn, {log.attrs.get('status')}" for log in logs if log not in done]
    left += [f"{path}: not drawn, not run" for path in paths if not path.is_file()]
    return done, left
