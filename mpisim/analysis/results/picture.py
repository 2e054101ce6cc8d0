"""Pictures that are small enough for a repository."""

from __future__ import annotations

import io
from typing import Any

from mpisim.core.errors import InputError

LIMIT = 200_000  # bytes
RESOLUTIONS = (200, 160, 130, 110, 100)  # dots an inch; below the last, small text is unreadable
COLOURS = 256  # of a palette


def small_png(figure: Any, limit: int = LIMIT) -> bytes:
    """A matplotlib figure as PNG with a palette, at the highest resolution that fits the limit.

    The same figure gives the same bytes. `InputError` where no resolution fits.
    """
    for dpi in RESOLUTIONS:
        content = _with_palette(figure, dpi)
        if len(content) <= limit:
            return content
    raise InputError(
        f"the picture has {len(content):,} bytes at {dpi} dots an inch; it must have at most"
        f" {limit:,} to go on record: draw fewer or smaller panels"
    )


def _with_palette(figure: Any, dpi: int) -> bytes:
    from PIL import Image  # matplotlib writes PNG with it, too

    drawn, content = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    with Image.open(drawn) as picture:
        palette = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    palette.save(content, format="png", optimize=True)
    return content.getvalue()
