"""What `smooth` and the compressors for it refuse, each with one line."""

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core.errors import InputError
from tests.compressors.cases import SINGLE, draw
from tests.compressors.smooth_support import Only, network, prepared, smooth, spd


def test_it_needs_matrices_and_workers():
    class None_(Only):
        def largest_hessian(self):
            raise InputError("method.stepsize: nothing is known")

    compressor = make(smooth({"name": "qsgd", "s": 1})).bind(5, 2, SINGLE)
    with pytest.raises(InputError, match=r"compressor\.name: 'smooth' needs smoothness matrices"):
        compressor.prepare(network(2), None_(spd(2, 5)))
    with pytest.raises(InputError, match="must be prepared"):
        compressor.form(draw(2))
    compressor, star = prepared(smooth({"name": "quant-plus"}), spd(2, 5))
    with pytest.raises(InputError, match="cannot compress messages of the server"):
        star.broadcast(np.ones(5), compressor)


@pytest.mark.parametrize(("d", "n", "s"), [(54, 6, 1), (123, 8, 1), (300, 8, 2), (9, 30, 1)])
def test_the_baselines_of_the_paper_are_the_defaults(d, n, s):
    """s = floor(sqrt(d) / n), at least 1, and B = n, at most d: SAQ's published code."""
    plain, blocks = (make({"name": name}).bind(d, n, SINGLE) for name in ("qsgd", "block-quant"))
    assert (
        plain.form(draw(2)).s_by_worker.tolist()
        == blocks.form(draw(2)).s_by_worker.tolist()
        == [[s]]
    )
    assert plain.omega == min(d / s**2, d**0.5 / s)
    assert blocks.form(draw(2)).norms == min(n, d)
    plus = make({"name": "block-quant-plus"}).bind(d, n, SINGLE)
    assert plus.form(draw(2)).norms == min(n, d)
    h = 1 / plus.form(draw(2)).s_by_worker
    sizes = np.diff(plus.starts)
    steps = h.reshape(-1)[plus.starts[:-1]]
    spent = (1 / steps**2 + np.sqrt(sizes) / steps).sum() + sizes.size
    assert spent == pytest.approx(d / n + sizes.size)
