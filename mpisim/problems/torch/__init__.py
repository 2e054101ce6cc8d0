"""Neural networks in PyTorch: data sets, models, gradients.

Only loading a `Torch` problem imports PyTorch. A plugin adds a data set with `data_set`, and a
model with `mpisim.problems.torch.models.model`.
"""

from mpisim.problems.torch.problem import Torch
from mpisim.problems.torch.samples import SAMPLES, Samples, data_set

__all__ = ["SAMPLES", "Samples", "Torch", "data_set"]
