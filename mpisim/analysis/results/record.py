"""Puts a figure that has been drawn on record."""

from __future__ import annotations

from pathlib import Path

from mpisim.analysis.results.files import FOLDER, Result, write
from mpisim.analysis.results.page import write_page
from mpisim.analysis.results.picture import small_png
from mpisim.analysis.results.provenance import provenance_of
from mpisim.analysis.study.draw import Drawn


def record(drawn: Drawn, scale: str, seconds: float) -> list[Path]:
    """Write picture, claims and provenance into the study's results, and their page anew.

    Returns the files. ``seconds`` is what a measurement took; a log says this of its run.
    """
    study, figure = drawn.study, drawn.figure
    picture = small_png(drawn.picture)
    result = Result(provenance_of(study, figure, scale, seconds), drawn.claims)
    return [*write(study.folder / FOLDER, result, picture), write_page(study.folder)]
