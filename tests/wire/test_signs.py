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


@pytest.mark.drawn(12)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [*range(1, 26), 1000])
def test_layers_begin_anywhere_in_a_byte(d, dtype):
    random = np.random.default_rng(d)
    precision = Precision(np.dtype("float32"), np.dtype(dtype))
    for layers in (own for own in (1, 2, 5) if own <= d):
        inner = np.sort(random.choice(np.arange(1, d), layers - 1, replace=False))
        starts = np.array([0, *inner, d])
        v, rows = random.standard_normal((3, d)), random.standard_normal((3, d)).astype(dtype)
        scales = np.abs(random.standard_normal((3, layers))).astype(np.float32)
        scales[0] = 0
        message = SignsForm(d, 3, precision, starts).pack(scales, v)
        wanted = np.where(v < 0, -1, 1).astype(dtype) * np.repeat(scales, np.diff(starts), axis=1)
        assert message.decoded().tobytes() == wanted.astype(dtype).tobytes()
        assert message.total().tobytes() == (wanted[0] + wanted[1] + wanted[2] + 0.0).tobytes()
        sums = rows + wanted
        message.add_to(rows)
        assert rows.tobytes() == sums.tobytes()
