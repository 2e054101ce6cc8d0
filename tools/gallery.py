"""Writes docs/studies/gallery.md and docs/gallery.png: the figures in run/ that are on record.

`make gallery` runs it. The pages of the studies' results are made again, too.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from mpisim.analysis.claims import counts, summary
from mpisim.analysis.formatting import escaped
from mpisim.analysis.formatting import markdown as table
from mpisim.analysis.results import (
    FOLDER,
    PAGE,
    Result,
    anchor,
    by_figure,
    by_scale,
    read,
    scales_of,
    write_page,
)
from mpisim.core.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
GALLERY, STUDIES = Path("docs/studies/gallery.md"), Path("run")
SMALL = Path("docs/gallery.png")  # of README
ABREAST, COLOURS = 2, 128  # figures in a row, palette
PAGE_WIDTH, TALLEST, GAP, CAPTION = 1600, 620, 24, 40  # pixels
WIDTH = 320  # of a picture, in pixels
ABOUT = """\
# Gallery

The figures and tables of the [studies](index.md) that are on record, with the verdicts on their
claims. Follow a picture to its page, which has the claims, settings, seconds, machine and commit.
[Verdicts](../how-to/studies.md#verdicts) says what a verdict means. `make gallery` writes this
page.
"""


def gallery(root: Path) -> str:
    """The page for the studies in ROOT/run."""
    found = [(folder, read(folder)) for folder in sorted((root / STUDIES).glob(f"*/{FOLDER}"))]
    shown = [_study(folder, results) for folder, results in found if results]
    return "\n\n".join([ABOUT.strip(), *(shown or ["Nothing is on record yet."])]) + "\n"


def _study(folder: Path, results: Sequence[Result]) -> str:
    """A study's heading, its verdicts, and a row of pictures for each figure."""
    name, place = folder.parent.name, f"../../{STUDIES}/{folder.parent.name}"
    scales = scales_of(results)
    rows = [
        [f"[{figure}]({place}/{FOLDER}/{PAGE}#{anchor(figure)})"]
        + [_cell(f"{place}/{FOLDER}", own[scale]) if scale in own else "" for scale in scales]
        for figure, own in by_figure(results).items()
    ]
    title = f"## {name}\n\n{escaped(results[-1].provenance.study_title)} [More]({place}/README.md)"
    return "\n\n".join([title, summary(by_scale(results)), table(["figure", *scales], rows)])


def _cell(folder: str, result: Result) -> str:
    one = result.provenance
    picture = f'<img src="{folder}/{result.picture}" width="{WIDTH}" alt="{one.figure}">'
    link = f"[{picture}]({folder}/{PAGE}#{anchor(one.figure)})"
    return f"{link}<br>{escaped(one.title)}: {counts(result.claims)}"


def small(root: Path) -> bytes:
    """The `most_said` figure of each study with its name above, two in a row, as PNG.

    The pictures of a row have the same height, at which they fill it.
    """
    from PIL import Image, ImageDraw, ImageFont

    groups = [(folder, read(folder)) for folder in sorted((root / STUDIES).glob(f"*/{FOLDER}"))]
    chosen = [(folder, most_said(results)) for folder, results in groups if results]
    shown = [
        (folder.parent.name, Image.open(folder / one.picture).convert("RGB"))
        for folder, one in chosen
    ]
    rows = [shown[i : i + ABREAST] for i in range(0, len(shown), ABREAST)]
    heights = [
        min(TALLEST, round((PAGE_WIDTH - GAP * len(row)) / sum(p.width / p.height for _, p in row)))
        for row in rows
    ]
    page = Image.new("RGB", (PAGE_WIDTH, sum(heights) + (GAP + CAPTION) * len(rows)), "white")
    font, top = ImageFont.load_default(CAPTION * 0.7), 0
    for row, height in zip(rows, heights, strict=True):
        left = 0
        for name, picture in row:
            ImageDraw.Draw(page).text((left + GAP, top), name, "black", font)
            width = round(picture.width * height / picture.height)
            scaled = picture.resize((width, height), Image.Resampling.LANCZOS)
            page.paste(scaled, (left, top + CAPTION))
            left += width + GAP
        top += height + CAPTION + GAP
    content = io.BytesIO()
    page.quantize(COLOURS).save(content, format="png", optimize=True)
    return content.getvalue()


def most_said(results: Sequence[Result]) -> Result:
    """The figure with most claims, at paper scale if that is on record."""
    return max(results, key=lambda one: (len(one.claims), one.provenance.scale == "paper"))


def main() -> None:
    """Write the pages of all studies that have results, and the gallery."""
    for folder in sorted((ROOT / STUDIES).glob(f"*/{FOLDER}")):
        if read(folder):
            print(write_page(folder.parent))
    write_atomic(ROOT / GALLERY, gallery(ROOT).encode())
    write_atomic(ROOT / SMALL, small(ROOT))
    print(ROOT / GALLERY, ROOT / SMALL)


if __name__ == "__main__":
    main()
