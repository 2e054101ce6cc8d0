"""The scaled sign layer by layer: as if each layer were a vector of its own."""

from types import SimpleNamespace

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core.errors import InputError
from tests.compressors.cases import DOUBLE, SINGLE, draw
from tests.helpers import columns, run_tables, table

LAYERS = [(7,), (4, 9), (1, 8, 2, 13)]


def layerwise(layers, precision=DOUBLE):
    compressor = make({"name": "scaled-sign", "layerwise": True}).bind(sum(layers), 3, precision)
    compressor.prepare(None, SimpleNamespace(layers=layers))
    return compressor


@pytest.mark.parametrize("layers", LAYERS, ids=str)
@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=["single", "double"])
def test_each_layer_is_a_vector_of_its_own(layers, precision):
    compressor, plain = layerwise(layers, precision), make({"name": "scaled-sign"})
    v = np.random.default_rng(0).standard_normal((3, sum(layers))).astype(precision.arithmetic)
    v *= np.repeat(10.0 ** np.arange(len(layers)), layers)
    message = compressor.compress(v, draw(3))
    packed = message.encode()
    received = compressor.form(draw(3)).decode(packed.data, packed.sizes)
    ends = np.cumsum(layers)
    each = zip(np.split(v, ends[:-1], axis=1), layers, strict=True)
    wanted = [plain.bind(d, 3, precision).compress(part, draw(3)).decoded() for part, d in each]
    assert np.array_equal(received.decoded(), np.hstack(wanted))
    assert np.array_equal(received.total(), received.decoded().sum(axis=0))
    assert (packed.payload_bits == precision.bits * len(layers) + sum(layers)).all()
    assert (compressor.paper_bits(message) == 32 * len(layers) + sum(layers)).all()
    lost = ((received.decoded() - v) ** 2).sum(axis=1) / (v**2).sum(axis=1)
    assert compressor.alpha == 1 / max(layers) and (lost <= 1 - compressor.alpha).all()


def test_a_run_has_a_scale_for_each_matrix(tmp_path):
    autoencoder = {"name": "autoencoder", "data": "sample", "images": 60, "code_size": 4}
    tables = {"problem": autoencoder | {"workers": 5}, "run": {"rounds": 2, "columns": ["pi"]}}
    tables["method"] = {"name": "cd-adam", "stepsize": 1e-3}
    for own, layers in ((False, 1), (True, 2)):
        log = tmp_path / f"{layers}.h5"
        run_tables(tables | {"compressor": {"name": "scaled-sign", "layerwise": own}}, log)
        c = columns(log)
        for name in ("bits_up", "bits_down", "paper_bits_up"):
            assert c[name].tolist() == [k * 5 * (32 * layers + 2 * 784 * 4) for k in range(3)]
        assert (c["pi_down"][1:] < 1).all() and (c["pi_code"][1:] > 0).all()


def test_layers_are_those_of_x_alone():
    inner = {"name": "scaled-sign", "layerwise": True}
    smooth = {"name": "smooth", "inner": inner}
    diana = {"name": "diana", "stepsize": 0.1}
    with pytest.raises(InputError, match=r"compressor\.inner\.layerwise: True is not allowed"):
        run_tables(table(diana, smooth, problem={"name": "logistic"}))
