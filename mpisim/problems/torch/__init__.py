"""Neural networks, and any other PyTorch modules, as problems.

A plugin makes a problem of a module of its own with `TorchProblem`, `samples_of` and the decorator
`mpisim.problem`. For the problem ``torch`` it adds a data set with `data_set`, and a network with
`mpisim.problems.torch.models.model`. Only loading such a problem imports PyTorch.
"""

from mpisim.problems.torch.problem import Torch, TorchProblem
from mpisim.problems.torch.samples import SAMPLES, Samples, data_set, samples_of

__all__ = ["SAMPLES", "Samples", "Torch", "TorchProblem", "data_set", "samples_of"]
