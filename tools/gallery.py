"""Writes docs/studies/gallery.md and docs/gallery.png: the figures in run/ that are on record.

`make gallery` runs it. The pages of the studies' results are made again, too.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.analysis.claims import counts, summary
from mpisim.analysis.formatting import escaped
from mpisim.analysis.formatting import markdown as table
from mpisim.analysis.results import FOLDER, Result, by_scale, read
from mpisim.analysis.results_page import PAGE, anchor, by_figure, scales_of, write_page
from mpisim.core.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
GALLERY, STUDIES = Path("docs/studies/gallery.md"), Path("run")
SMALL = Path("docs/gallery.png")  # of README
COLOURS = 128  # of the palette
# pixels of the small gallery; its rows are about as wide
HEIGHT, ROW_WIDTH, CAPTION = 270, 1700, 32
COVERS = {"saq": "fig3"}  # where the smallest picture has twenty panels
WIDTH = 320  # of a picture on the page, in pixels
ABOUT = """\
# Gallery

The figures and tables of the [studies](index.md) that are on record, with the verdicts on their
claims. Follow a picture to its page, which has the claims, settings, seconds, machine and commit.
[Verdicts](../how-to/studies.md#verdicts) says what a verdict means. `make gallery` writes this
page.
"""


def gallery(root: Path) -> str:
    """The page for the studies in ROOT/run."""
    shown = [_study(folder, results) for folder, results in recorded(root)]
    return "\n\n".join([ABOUT.strip(), *(shown or ["Nothing is on record yet."])]) + "\n"


def recorded(root: Path) -> list[tuple[Path, list[Result]]]:
    """The folders of results in ROOT/run, with what is on record there; without empty ones."""
    folders = sorted((root / STUDIES).glob(f"*/{FOLDER}"))
    return [(folder, results) for folder in folders if (results := read(folder))]


def _study(folder: Path, results: Sequence[Result]) -> str:
    """A study's heading, its verdicts, and a row of pictures for each figure."""
    name, place = folder.parent.name, f"../../{STUDIES}/{folder.parent.name}"
    scales = scales_of(results)
    rows = []
    for figure, at in by_figure(results).items():
        cells = [_cell(f"{place}/{FOLDER}", at[one]) if one in at else "" for one in scales]
        rows.append([f"[{figure}]({place}/{FOLDER}/{PAGE}#{anchor(figure)})", *cells])
    title = f"## {name}\n\n{escaped(results[-1].provenance.study_title)} [More]({place}/README.md)"
    return "\n\n".join([title, summary(by_scale(results)), table(["figure", *scales], rows)])


def _cell(folder: str, result: Result) -> str:
    one = result.provenance
    picture = f'<img src="{folder}/{result.picture}" width="{WIDTH}" alt="{one.figure}">'
    return f"{picture}<br>{escaped(one.title)}: {counts(result.claims)}"


def small(root: Path) -> bytes:
    """A picture of each study, all at the same height, as PNG."""
    from PIL import Image

    page = _page([_cell_of(folder, fewest_panels(folder, one)) for folder, one in recorded(root)])
    content = io.BytesIO()
    # an octree keeps the hue of thin lines on white, which the usual median cut merges
    few = page.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(content, format="png", optimize=True)
    return content.getvalue()


def _page(cells: Sequence[Any]) -> Any:
    """The cells in rows of about the same width: the widest first, each into the shortest row."""
    from PIL import Image

    count = -(-sum(cell.width for cell in cells) // ROW_WIDTH)
    rows: list[list[int]] = [[] for _ in range(count)]

    def width(row: list[int]) -> int:
        return sum(cells[i].width for i in row)

    for i in sorted(range(len(cells)), key=lambda i: -cells[i].width):
        min(rows, key=width).append(i)
    across = max(map(width, rows))
    page = Image.new("RGB", (across, count * cells[0].height), "white")
    for number, row in enumerate(sorted(map(sorted, rows))):
        left = (across - width(row)) // 2
        for i in row:
            page.paste(cells[i], (left, number * cells[0].height))
            left += cells[i].width
    return page


def _cell_of(folder: Path, result: Result) -> Any:
    """A picture `HEIGHT` pixels high, with its caption above."""
    from PIL import Image, ImageDraw, ImageFont

    picture = _first_row(Image.open(folder / result.picture).convert("RGB"))
    width = HEIGHT * picture.width // picture.height
    cell = Image.new("RGB", (width + CAPTION, HEIGHT + CAPTION), "white")
    cell.paste(picture.resize((width, HEIGHT), Image.Resampling.LANCZOS), (CAPTION // 2, CAPTION))
    caption = f"{folder.parent.name}, {result.provenance.figure}"
    font = ImageFont.load_default(CAPTION * 0.5)
    ImageDraw.Draw(cell).text((CAPTION, CAPTION // 3), caption, "black", font)
    return cell


def _first_row(picture: Any) -> Any:
    """The first of two rows of panels, cut where lines near the middle are blank; else all."""
    top, stop = int(0.45 * picture.height), int(0.58 * picture.height)
    blank = np.flatnonzero((np.asarray(picture)[top:stop] > 250).all(axis=(1, 2)))
    return picture.crop((0, 0, picture.width, top + blank[-1])) if blank.size else picture


def fewest_panels(folder: Path, results: Sequence[Result]) -> Result:
    """The result with the smallest picture that is wider than high, as panels are alike in size."""
    from PIL import Image

    sizes = {}
    for number, result in enumerate(results):
        with Image.open(folder / result.picture) as picture:
            sizes[number] = picture.size
    cover = COVERS.get(folder.parent.name)
    sizes = {i: s for i, s in sizes.items() if results[i].provenance.figure == cover} or sizes
    wide = [number for number, (width, height) in sizes.items() if width > height]
    return results[min(wide or sizes, key=lambda number: (prod(sizes[number]), number))]


def main() -> None:
    """Write the pages of all studies that have results, and the gallery."""
    for folder, _ in recorded(ROOT):
        print(write_page(folder.parent))
    write_atomic(ROOT / GALLERY, gallery(ROOT).encode())
    write_atomic(ROOT / SMALL, small(ROOT))
    print(ROOT / GALLERY, ROOT / SMALL)


if __name__ == "__main__":
    main()
