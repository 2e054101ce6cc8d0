"""Results on record: pictures, claims and provenance beside a study, and a page that shows them."""

from mpisim.analysis.results.files import FOLDER, Result, by_scale, of_study, read
from mpisim.analysis.results.page import PAGE, anchor, by_figure, page, scales_of, write_page
from mpisim.analysis.results.record import record

__all__ = ["FOLDER", "PAGE", "Result"]
__all__ += [
    "anchor",
    "by_figure",
    "by_scale",
    "of_study",
    "page",
    "read",
    "record",
    "scales_of",
    "write_page",
]
