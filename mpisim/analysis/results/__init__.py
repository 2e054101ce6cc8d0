"""Results on record: pictures, claims and provenance beside a study, and a page that shows them."""

from mpisim.analysis.results.files import FOLDER, Result, by_scale, of_study, read
from mpisim.analysis.results.page import (
    PAGE,
    anchor,
    by_figure,
    judge_again,
    page,
    record,
    scales_of,
    write_page,
)
