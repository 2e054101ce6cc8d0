"""Devices, without an accelerator: all tensors of a gradient are on the device, or none is."""

import contextlib

import numpy as np
import pytest

from mpisim.runs.experiment import parse
from tests.problems.torch.support import network

torch = pytest.importorskip("torch")


@pytest.fixture
def elsewhere(monkeypatch):
    """PyTorch's device "meta" in an accelerator's place.

    It computes no values, but refuses operations on tensors of two devices, as an accelerator
    does. What would be copied from it is zeros.
    """
    from mpisim.problems.torch import flat_model as module

    monkeypatch.setattr(module, "device_of", lambda name, first: torch.device("meta"))
    monkeypatch.setattr(torch.Tensor, "cpu", lambda t: torch.zeros(t.shape, dtype=t.dtype))
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
    for name, value in (("item", 0.0), ("__float__", 1.0), ("__int__", 0)):
        monkeypatch.setattr(torch.Tensor, name, lambda t, value=value: value)


@pytest.mark.parametrize("model", ["resnet18", "wrn-16-4", "vgg16", "small-cnn", "linear"])
def test_all_of_a_gradient_is_on_the_device(model, elsewhere):
    tables = network({"name": "cd-adam", "batch": 9}, {"name": "scaled-sign"}, augment=True)
    tables["problem"] |= {"device": "auto", "model": model}
    problem = parse(tables).problem.loaded(4, 1, 3, 1, np.dtype("float32"))
    assert problem.identity.endswith("(meta)")
    x, batch = problem.initial_point(), np.zeros((3, 9), np.int64)
    shapes = [problem.losses_and_gradients(x)[1], problem.batch_gradients(x, batch)]
    assert [g.shape for g in [*shapes, problem.test(x)[1]]] == [(3, problem.d)] * 3
    own = problem.flat_model
    tensors = [own.x, own.grad, *own.model.buffers()]
    tensors += [t for p in own.model.parameters() for t in (p, p.grad)]
    assert {t.device.type for t in tensors} == {"meta"}


def test_ranks_share_the_accelerators(monkeypatch):
    from mpisim.problems.torch.flat_model import device_of

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of("cpu", 3) == device_of("auto", 3) == torch.device("cpu")
    with pytest.raises(RuntimeError, match="there is no device 'accelerator'"):
        device_of("accelerator", 0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [device_of("auto", first).index for first in (0, 1, 2)] == [0, 1, 0]
    assert device_of("accelerator", 3) == torch.device("cuda", 1)
    assert device_of("cpu", 0) == torch.device("cpu")


def test_mixed_arithmetic_is_bfloat16_in_the_forward_pass_alone():
    gradients = []
    for mixed in (False, True):
        tables = network({"name": "gd"})
        tables["problem"] |= {"model": "linear", "mixed": mixed}
        problem = parse(tables).problem.loaded(4, 0, 4, 1, np.dtype("float32"))
        losses, g = problem.losses_and_gradients(problem.initial_point())
        assert g.dtype == np.float32 and np.isfinite(losses).all()
        gradients.append(g)
    full, mixed = gradients
    assert not np.array_equal(full, mixed)
    # 8 bits of mantissa, in inputs, weights and outputs
    assert np.linalg.norm(mixed - full) <= 3 * 2**-8 * np.linalg.norm(full)
