"""Layer by layer: as if each layer were a vector of its own."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from mpisim.comm.network import compressed
from mpisim.compressors import make
from mpisim.core.errors import InputError
from tests.compressors.cases import DOUBLE, SINGLE, draw
from tests.helpers import run_tables, table


def test_layers_are_those_of_x_alone():
    inner = {"name": "scaled-sign", "layerwise": True}
    smooth = {"name": "smooth", "inner": inner}
    diana = {"name": "diana", "stepsize": 0.1}
    with pytest.raises(InputError, match=r"compressor\.inner\.layerwise: True is not allowed"):
        run_tables(table(diana, smooth, problem={"name": "logistic"}))


EACH = [  # a compressor of each layer
    {"name": "identity"},
    {"name": "randk", "k": 0.4},
    {"name": "topk", "k": 0.4},
    {"name": "qsgd", "s": 3},
    {"name": "natural"},
    {"name": "permk"},
    {"name": "scaled-sign"},
    {"name": "block-quant", "blocks": 1, "s": 4},
]


def by_layer(inner, layers, precision=DOUBLE):
    compressor = make({"name": "layerwise", "inner": inner}).bind(sum(layers), 3, precision)
    compressor.prepare(None, SimpleNamespace(layers=layers))
    return compressor


@pytest.mark.parametrize("inner", EACH, ids=lambda inner: inner["name"])
@pytest.mark.parametrize(
    ("layers", "precision", "m"),
    [((5, 8, 2, 13), SINGLE, 3), ((4, 9), DOUBLE, 3), ((7,), DOUBLE, 0)],
    ids=["single", "double", "nobody"],
)
def test_every_compressor_layer_by_layer(inner, layers, precision, m):
    compressor, d = by_layer(inner, layers, precision), sum(layers)
    v = np.random.default_rng(0).standard_normal((m, d)).astype(precision.arithmetic)
    message, form = compressor.compress(v, draw(m)), compressor.form(draw(m))
    packed = message.encode()
    assert form.d == d and (form.sizes is None or np.array_equal(form.sizes, packed.sizes))
    received = form.decode(packed.data, packed.sizes)
    assert received.decoded().tobytes() == message.decoded().tobytes()
    start, payload, paper = 0, np.zeros(m, np.int64), np.zeros(m, np.int64)
    for layer, length in enumerate(layers):
        own = make(inner).bind(length, 3, precision)
        part = slice(start, start + length)
        alone = own.compress(v[:, part], dataclasses.replace(draw(m), purpose=f"up/layer {layer}"))
        assert received.decoded()[:, part].tobytes() == alone.decoded().tobytes()
        assert received.total()[part].tobytes() == alone.total().tobytes()
        payload, paper, start = (
            payload + alone.payload_bits,
            paper + own.paper_bits(alone),
            part.stop,
        )
    assert np.array_equal(received.payload_bits, payload)
    assert np.array_equal(received.layer_bits().sum(axis=1), payload)
    assert np.array_equal(packed.payload_bits, payload)
    assert np.array_equal(compressor.paper_bits(received), paper)
    rows = v + 1
    received.add_to(rows)
    assert np.array_equal(rows, v + 1 + message.decoded())


@pytest.mark.parametrize("inner", EACH, ids=lambda inner: inner["name"])
def test_tensors_layer_by_layer(inner, monkeypatch):
    torch = pytest.importorskip("torch")
    from mpisim.core import arrays
    from mpisim.wire.placed import placed

    monkeypatch.setattr(arrays, "HOST_MEMORY", ())
    arrays.COPIES.reset()
    compressor = by_layer(inner, (5, 8, 2, 13))
    v = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 28)))
    message = compressed(compressor, v, draw(3))
    assert arrays.FALLBACK not in arrays.COPIES.to_host
    for there in (message, placed(message.host, v.device)):
        assert np.array_equal(there.decoded().numpy(), message.host.decoded())
        assert np.array_equal(there.total().numpy(), message.host.total())
    assert np.allclose(message.decoded(), compressor.compress(v.numpy(), draw(3)).decoded())


@pytest.mark.parametrize(
    ("inner", "line"),
    [
        ({"name": "topk", "k": 5}, r"compressor\.inner\.k: 5 is not allowed; .* d = 4"),
        ({"name": "rank-k", "k": 1}, r"compressor\.inner\.name: 'rank-k' is not allowed"),
        ({"name": "randk"}, r"compressor\.inner\.k: missing"),
    ],
)
def test_bad_inner_compressors_are_one_line(inner, line):
    with pytest.raises(InputError, match=line):
        by_layer(inner, (9, 4))
