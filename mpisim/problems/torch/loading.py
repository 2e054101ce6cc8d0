"""What loading a `TorchProblem` does with PyTorch: the module and the samples on a device."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import torch

from mpisim.core.errors import InputError
from mpisim.problems.torch.batches import Batch, Normalise, on_device
from mpisim.problems.torch.devices import device_of, local_rank, set_arithmetic
from mpisim.problems.torch.flat_model import FlatModel
from mpisim.problems.torch.samples import Samples

if TYPE_CHECKING:
    from mpisim.problems.torch.base import TorchProblem

CLOSE = 1e-3  # more than the rounding of a sum of four losses


def model_of(problem: TorchProblem, shape: tuple[int, ...]) -> FlatModel:
    """The problem's module on this rank's device, for samples of this shape."""
    try:
        device = device_of(problem.device, local_rank())
    except RuntimeError as error:
        raise InputError(f"problem.device: {error}") from None
    set_arithmetic(device, problem.tf32)
    with torch.random.fork_rng(devices=[]):  # x^0 is PyTorch's own, from an addressed seed
        torch.manual_seed(int(problem.streams.raw("initial point", 0, 0, 1, 1)[0, 0]) >> 1)
        module = problem.make_module(shape)
    module = module.to(getattr(torch, problem.dtype.name))
    return FlatModel(module, device, problem.loss, problem.correct, problem.mixed)


def shards_of(
    problem: TorchProblem, data: Samples, mine: list[np.ndarray]
) -> tuple[list[Batch], list[Batch]]:
    """The training and the test samples of a block of workers, on the device.

    mine : the numbers of each worker's training samples. The first `problem.tests` test samples are
    dealt to all workers in equal shares.
    """
    model = problem.flat_model
    normalise = Normalise.of(data.features, model.device, problem.dtype)

    def placed(features: np.ndarray, targets: np.ndarray) -> Batch:
        x, y = (on_device(values, model.device, model.x.dtype) for values in (features, targets))
        return Batch(x, y, normalise)

    first, m, n = problem.first, problem.m, problem.n
    bounds = [problem.tests * i // n for i in range(first, first + m + 1)]
    shares = [slice(*pair) for pair in itertools.pairwise(bounds)]
    return (
        [placed(data.features[rows], data.labels[rows]) for rows in mine],
        [placed(data.test_features[share], data.test_labels[share]) for share in shares],
    )


def require_sum(problem: TorchProblem, samples: Batch) -> None:
    """`InputError` where `TorchProblem.loss` is a mean: twice the samples have twice the sum."""
    problem.flat_model.model.eval()
    with torch.no_grad():
        inputs, targets = samples.part(0, 2)
        outputs = problem.flat_model.model(inputs).to(problem.flat_model.x.dtype)
        once = problem.loss(outputs, targets)
        twice = problem.loss(torch.cat([outputs] * 2), torch.cat([targets] * 2))
    if once.dim() > 0:
        said = f"one number for all samples, not an array of shape {tuple(once.shape)}"
    elif abs(float(twice - 2 * once)) > CLOSE * abs(float(twice)):
        said = "the sum over its samples, not their mean"
    else:
        return
    raise InputError(f'problem {problem.name!r}: loss must be {said} (reduction="sum")')
