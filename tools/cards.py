"""Writes docs/concepts/cards.png: all compressors over bits a coordinate and error, with the bound.

`make gallery` runs it. The picture holds a digest of each curve's numbers; the tests compute one.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

from mpisim.analysis.card import CHART, chart, points_of
from mpisim.core.files import write_atomic

PICTURE = Path(__file__).resolve().parents[1] / "docs/concepts/cards.png"
D, VECTORS = 1000, "normal"


def digest(label: str) -> str:
    """Of the points of a curve of the chart, to four digits."""
    points = points_of(CHART[label], D, VECTORS)
    line = f"{label}: " + " ".join(f"{bits:.4g},{error:.4g}" for bits, error in points)
    return hashlib.sha256(line.encode()).hexdigest()


def main() -> None:
    """Draw the chart."""
    picture = io.BytesIO()
    metadata = {"Description": " ".join(map(digest, CHART)), "Software": "mpisim"}
    chart(D, vectors=VECTORS).savefig(picture, format="png", dpi=130, metadata=metadata)
    write_atomic(PICTURE, picture.getvalue())
    print(PICTURE.name)


if __name__ == "__main__":
    main()
