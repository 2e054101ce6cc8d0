"""Writes docs/studies/gallery.md and docs/gallery.png: the figures in run/ that are on record.

`make gallery` runs it. The pages of the studies' results are made again, too.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis.claims import counts, summary
from mpisim.analysis.formatting import escaped
from mpisim.analysis.formatting import markdown as table
from mpisim.analysis.results import FOLDER, Result, by_scale, read
from mpisim.analysis.results_page import PAGE, anchor, by_figure, scales_of, write_page
from mpisim.core.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
GALLERY, STUDIES = Path("docs/studies/gallery.md"), Path("run")
SMALL = Path("docs/gallery.png")  # of README
ABREAST, COLOURS = 2, 128  # figures in a row, palette
ROW_WIDTH, CAPTION = 1280, 40  # pixels
LEAST = 3.6  # width over height of a row
WIDE = (1.6, 2.4)  # width over height
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
    recorded = [(folder, read(folder)) for folder in sorted((root / STUDIES).glob(f"*/{FOLDER}"))]
    shown = [_study(folder, results) for folder, results in recorded if results]
    return "\n\n".join([ABOUT.strip(), *(shown or ["Nothing is on record yet."])]) + "\n"


def _study(folder: Path, results: Sequence[Result]) -> str:
    """A study's heading, its verdicts, and a row of pictures for each figure."""
    name, place = folder.parent.name, f"../../{STUDIES}/{folder.parent.name}"
    scales = scales_of(results)
    rows = [
        [f"[{figure}]({place}/{FOLDER}/{PAGE}#{anchor(figure)})"]
        + [
            _cell(f"{place}/{FOLDER}", shown_at[scale]) if scale in shown_at else ""
            for scale in scales
        ]
        for figure, shown_at in by_figure(results).items()
    ]
    title = f"## {name}\n\n{escaped(results[-1].provenance.study_title)} [More]({place}/README.md)"
    return "\n\n".join([title, summary(by_scale(results)), table(["figure", *scales], rows)])


def _cell(folder: str, result: Result) -> str:
    one = result.provenance
    picture = f'<img src="{folder}/{result.picture}" width="{WIDTH}" alt="{one.figure}">'
    return f"{picture}<br>{escaped(one.title)}: {counts(result.claims)}"


def small(root: Path) -> bytes:
    """The first wide figure of each study, two in a row at the same height, as PNG."""
    from PIL import Image

    groups = [(folder, read(folder)) for folder in sorted((root / STUDIES).glob(f"*/{FOLDER}"))]
    figures = [(folder, first_wide(folder, results)) for folder, results in groups if results]
    rows = [_row(figures[i : i + ABREAST]) for i in range(0, len(figures), ABREAST)]
    page = Image.new("RGB", (ROW_WIDTH, sum(row.height for row in rows)), "white")
    top = 0
    for row in rows:
        page.paste(row, (0, top))
        top += row.height
    content = io.BytesIO()
    # an octree keeps the hue of thin lines on white, which the usual median cut merges
    few = page.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(content, format="png", optimize=True)
    return content.getvalue()


def _row(figures: Sequence[tuple[Path, Result]]) -> Any:
    """Figures side by side over the page's width, each with its caption above."""
    from PIL import Image, ImageDraw, ImageFont

    pictures = [Image.open(folder / result.picture).convert("RGB") for folder, result in figures]
    ratios = [picture.width / picture.height for picture in pictures]
    height = int(ROW_WIDTH / max(LEAST, sum(ratios)))
    row = Image.new("RGB", (ROW_WIDTH, height + CAPTION), "white")
    font, left = ImageFont.load_default(CAPTION * 0.5), (ROW_WIDTH - int(height * sum(ratios))) // 2
    for (folder, result), picture, ratio in zip(figures, pictures, ratios, strict=True):
        row.paste(picture.resize((int(height * ratio), height)), (left, CAPTION))
        caption = f"{folder.parent.name}, {result.provenance.figure}"
        ImageDraw.Draw(row).text((left + CAPTION // 2, CAPTION // 4), caption, "black", font)
        left += int(height * ratio)
    return row


def first_wide(folder: Path, results: Sequence[Result]) -> Result:
    """The first figure with a wide, not very wide picture; at paper scale if that is on record."""
    from PIL import Image

    def order(figure: str) -> tuple[bool, int, str]:
        return not figure.startswith("fig"), len(figure), figure

    def ratio(result: Result) -> float:
        with Image.open(folder / result.picture) as picture:
            return picture.width / picture.height

    named = sorted(by_figure(results).items(), key=lambda item: order(item[0]))
    ordered = [min(one.values(), key=lambda result: result.provenance.scale) for _, one in named]
    return next((one for one in ordered if WIDE[0] <= ratio(one) <= WIDE[1]), ordered[0])


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
