"""Legends never leave the page, however many curves there are and however long their names."""

import io

import numpy as np
import pytest

from mpisim.analysis.api import plot
from mpisim.core.errors import InputError

UNLIKE = (
    ("marina", 'name = "randk"\nk = 10'),
    ("diana", 'name = "qsgd"\ns = 4'),
    ("ef21", 'name = "topk"\nk = 10'),
    ("gd", 'name = "identity"'),
    ("cd-adam", 'name = "scaled-sign"'),
    ("dcgd", 'name = "natural"'),
    ("pp-marina", 'name = "block-quant-plus"\nblocks = 7\ncodec = "entropy"'),
    ("ef21-2way", 'name = "permk"'),
    ("vr-marina-online", 'name = "bernoulli"\np = 0.25'),
)
CONDITION = '{{ theory = {}.0, condition = "Theorem 2 with all of the constants of the problem" }}'


def legend_of(figure):
    return figure.axes[0].get_legend() or figure.legends[0]


def require_on_page(figure):
    """All of the legend, and a panel that is worth looking at, are on the page."""
    figure.draw_without_rendering()
    box, page = legend_of(figure).get_window_extent(), figure.bbox
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.x1 and box.y1 <= page.y1
    panel = figure.axes[0].get_window_extent()
    assert panel.width >= 0.3 * page.width and panel.height >= 80
    content = io.BytesIO()
    figure.savefig(content, format="raw", dpi=100)
    width, height = (int(side) for side in figure.bbox.size)
    pixels = np.frombuffer(content.getvalue(), np.uint8).reshape(height, width, 4)
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == 255).all()  # nothing is cut off there


@pytest.mark.drawn(4)
@pytest.mark.parametrize("size", [None, (8.0, 6.0)])
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("count", [2, 5, 9])
def test_unlike_curves(make_log, count, long, size):
    logs = [
        make_log(method=method, compressor=compressor, stepsize=step, rate=0.1 + 0.02 * i)
        for i, (method, compressor, step) in enumerate(unlike(count, long))
    ]
    figure = plot(logs, size=size)
    require_on_page(figure)
    assert len(legend_of(figure).get_texts()) == count


def unlike(count, long):
    """Methods, compressors and steps; the steps of one method are in its long names."""
    for i, (method, compressor) in enumerate(UNLIKE[:count]):
        step = CONDITION.format(i + 1) if long else '"theory"'
        yield "marina" if long else method, compressor, step


def test_a_page_without_room_is_refused(make_log):
    logs = [make_log(rounds=5, stepsize=1 / (i + 1)) for i in range(40)]
    with pytest.raises(InputError, match="--size 2 2: has no room for a legend of 40 curves"):
        plot(logs, size=(2, 2))
