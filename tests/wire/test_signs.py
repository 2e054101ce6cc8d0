"""Signs of long vectors are packed stretch by stretch: no border may show."""

import numpy as np
import pytest

from mpisim.wire.base import Precision
from mpisim.wire.signs import STRETCH, SignsForm


@pytest.mark.parametrize("d", [1, STRETCH - 1, STRETCH, STRETCH + 1, 2 * STRETCH + 13])
def test_stretches(d):
    v = np.random.default_rng(d).normal(size=(3, d))
    form = SignsForm(d, 3, Precision(np.dtype("f4"), np.dtype("f8")))
    packed = form.pack(np.ones(3, np.float32), v).encode()
    decoded = form.decode(packed.data, packed.sizes).decoded()
    assert np.array_equal(decoded, np.where(v < 0, -1.0, 1.0))
