"""A PyTorch model as a function of one flat vector, and its samples, on a rank's device.

Samples are normalised, and maybe moved, before the model sees them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from mpisim.core.errors import InputError
from mpisim.core.numerics.tensors import dtype_of
from mpisim.problems.torch.samples import are_images

COUPLED = _NormBase, _DropoutNd  # layers with which a minibatch's loss is no mean over samples
PAD = 4  # pixels by which augmentation moves an image, at most


class Normalise:
    """Makes what a model takes: images with mean 0 and variance 1 in each channel; others as is.

    features : the training samples, which decide that
    device, dtype : of what a model takes
    """

    def __init__(self, features: np.ndarray, device: torch.device, dtype: np.dtype):
        self.device, self.dtype = device, dtype_of(dtype)
        # on the CPU channels that come last are not faster, and sums would have other bits
        self.layout = torch.contiguous_format if device.type == "cpu" else torch.channels_last
        of_images = normalisation(features, dtype) if are_images(features) else ()
        self.scale = [torch.from_numpy(values).to(device) for values in of_images]

    def batch(self, features: np.ndarray, targets: np.ndarray) -> Batch:
        """Samples (b, ...) on the device: floats in its type ``dtype``, others in their own."""

        def placed(values: np.ndarray) -> torch.Tensor:
            tensor = torch.tensor(np.ascontiguousarray(values))
            dtype = self.dtype if tensor.is_floating_point() else tensor.dtype
            return tensor.to(self.device, dtype)

        return Batch(placed(features), placed(targets), self)

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        if self.scale:
            mean, inverse_deviation = self.scale
            features = (features - mean) * inverse_deviation
        layout = self.layout if features.dim() == 4 else torch.contiguous_format
        return features.contiguous(memory_format=layout)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Samples that a gradient is the mean over, on the device.

    features : (b, ...), not normalised
    targets : (b, ...)
    moves : (b, 3), int64, as `moves_of` returns; None: the images are not moved
    """

    features: torch.Tensor
    targets: torch.Tensor
    normalise: Normalise
    moves: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def first(self, count: int) -> Batch:
        """The first ``count`` samples."""
        return Batch(self.features[:count], self.targets[:count], self.normalise)

    def chosen(self, rows: torch.Tensor, moves: torch.Tensor | None) -> Batch:
        """The samples with numbers ``rows`` (b,), moved or not."""
        return Batch(self.features[rows], self.targets[rows], self.normalise, moves)

    def part(self, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What the model takes of samples start, ..., stop - 1, and their targets."""
        features = self.features[start:stop]
        if self.moves is not None:
            features = moved(features, self.moves[start:stop])
        return self.normalise(features), self.targets[start:stop]


def moved(images: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
    """Images (b, c, h, w), cut out of a black border and mirrored as ``moves`` (b, 3) says."""
    b, _, h, w = images.shape
    device = images.device
    padded = functional.pad(images, (PAD,) * 4)
    rows = moves[:, :1] + torch.arange(h, device=device)
    columns = moves[:, 1:2] + torch.arange(w, device=device)
    columns = torch.where(moves[:, 2:] == 1, columns.flip(1), columns)
    number = torch.arange(b, device=device)[:, None, None]
    return padded[number, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def normalisation(images: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Mean and inverse standard deviation of each channel of images, shape (channels, 1, 1)."""
    counts = [np.bincount(images[:, c].reshape(-1), minlength=256) for c in range(images.shape[1])]
    share = np.array(counts) / np.sum(counts, axis=1)[:, None]
    mean = share @ np.arange(256.0)
    deviation = np.sqrt(share @ np.arange(256.0) ** 2 - mean**2)
    shape = (-1, 1, 1)
    inverse = 1 / np.where(deviation > 0, deviation, 1)  # a channel may be the same everywhere
    return mean.reshape(shape).astype(dtype), inverse.reshape(shape).astype(dtype)


def moves_of(uniforms: np.ndarray) -> np.ndarray:
    """How images are moved: first row, first column, and whether mirrored (1), (..., 3), int64.

    Rows and columns are those of the image in a black border of `PAD` pixels.
    uniforms (..., 3) in [0, 1). The published CD-Adam code uses RandomCrop and
    RandomHorizontalFlip.
    """
    corner = (uniforms[..., :2] * (2 * PAD + 1)).astype(np.int64)
    return np.concatenate([corner, (uniforms[..., 2:] < 0.5).astype(np.int64)], axis=-1)


CLOSE = 1e-3  # more than the rounding of a sum of four losses
Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when CUDA starts

# The rank among those of its host: Open MPI, MPICH and Intel MPI (Hydra), MVAPICH, PALS, Flux,
# Slurm. A batch job of Slurm sets its variable for mpirun, too, so that it comes last.
LOCAL_RANKS = (
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "FLUX_TASK_LOCAL_ID",
    "SLURM_LOCALID",
)


def local_rank(environment: Mapping[str, str] = os.environ) -> int:
    """This rank's number among those of its host, as the launcher says; 0 without a launcher."""
    named = (environment.get(name, "") for name in LOCAL_RANKS)
    return next((int(value) for value in named if value.isdigit()), 0)


def device_of(name: str, rank: int) -> torch.device:
    """The device called ``name``; "auto" is an accelerator if there is one, else the CPU.

    `InputError` if there is none. The ranks of a host are dealt to its accelerators in turn.
    ``rank``: the `local_rank`.
    """
    if name == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda", rank % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cpu")
    raise InputError(f"problem.device: there is no device {name!r}")


def set_arithmetic(device: torch.device, tf32: bool) -> None:
    """Set how PyTorch computes on ``device``, for this process.

    Deterministic algorithms, on an accelerator where there are any; one thread on the CPU, which
    fixes the order of every sum. Without ``tf32`` products and convolutions in float32 are those of
    float32 on an accelerator, too. PyTorch's own default is TF32 in convolutions.
    """
    torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
    torch.utils.deterministic.fill_uninitialized_memory = False
    if device.type == "cpu":
        torch.set_num_threads(1)
    else:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32


def seed_modules(device: torch.device, number: int) -> None:
    """Seed what modules on ``device`` draw from.

    Not by `torch.manual_seed`: for each kind of accelerator that has not started, it formats a
    traceback, which takes longer than a pass of a small network.
    """
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index].manual_seed(number)


class Statistics:
    """Running means and variances of a model's normalisation layers, views of one flat tensor.

    PyTorch averages with equal weights, too (``momentum=None``), but counts on the device, and
    waits for that number in each layer. Here a hook counts.
    """

    def __init__(self, model: nn.Module):
        self.layers = [m for m in model.modules() if isinstance(m, _NormBase)]
        names = ("running_mean", "running_var")
        pairs = ((layer, name) for layer in self.layers for name in names)
        buffers = [(layer, name) for layer, name in pairs if getattr(layer, name) is not None]
        old = [getattr(layer, name) for layer, name in buffers]
        first = next(model.parameters())
        self.flat = torch.cat([t.reshape(-1) for t in old]) if old else first.new_empty(0)
        parts = self.flat.split([t.numel() for t in old]) if old else ()
        for (layer, name), tensor, part in zip(buffers, old, parts, strict=True):
            setattr(layer, name, part.view(tensor.shape))
        self._counts: dict[nn.Module, int] = dict.fromkeys(self.layers, 0)
        for layer in self.layers:
            layer.num_batches_tracked = None
            layer.register_forward_pre_hook(self._count)

    def reset(self) -> None:
        """Begin a new average."""
        self.flat.zero_()
        self._counts = dict.fromkeys(self.layers, 0)

    def _count(self, layer: nn.Module, _: object) -> None:
        """Before a layer's forward pass: 1 / count is the weight of what it sees now."""
        if layer.training:
            self._counts[layer] += 1
            layer.momentum = 1.0 / self._counts[layer]


class FlatModel:
    """Mean losses and gradients of a model over samples.

    Parameters and gradient are views of two flat tensors, shape (d,), in the order of
    ``model.parameters()``; those without ``requires_grad`` stay as they are. In training, batch
    norm uses the statistics of the samples that go through together, and averages them over one
    call of `gradient`. `test` uses such an average. Nothing waits for the device.

    model : on the CPU, with parameters of the arithmetic's type; moved to ``device``.
    loss : from outputs and targets (b, ...) to the sum of b losses
    correct : likewise to the number of samples that are classified correctly
    mixed : run forward passes under bfloat16 autocast.
    """

    def __init__(
        self, model: nn.Module, device: torch.device, loss: Function, correct: Function, mixed: bool
    ):
        self.model, self.device, self.mixed = model.to(device), device, mixed
        self.loss, self.correct = loss, correct
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.shapes = tuple((len(p), p[0].numel()) if p.dim() else (1, 1) for p in parameters)
        self.d = sum(p.numel() for p in parameters)
        self.x = torch.cat([p.detach().reshape(-1) for p in parameters])
        self.grad = torch.zeros_like(self.x)
        sizes = [p.numel() for p in parameters]
        parts = zip(self.x.split(sizes), self.grad.split(sizes), strict=True)
        for p, (x, grad) in zip(parameters, parts, strict=True):
            p.data, p.grad = x.view(p.shape), grad.view(p.shape)
        self.statistics = Statistics(self.model)

    def gradient(self, batch: Batch, chunk: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        """In training mode, over all samples of the batch: their sums, and the gradient (d,).

        The sums, float64 on the device, are of the losses and of the samples that are classified
        correctly. Samples go through in as few parts of at most ``chunk`` as possible, of sizes as
        equal as possible. The next call overwrites the gradient. seed : of dropout.
        """
        self.model.train()
        self.statistics.reset()
        seed_modules(self.device, seed)
        return self._passes(batch, chunk)

    def test(
        self, statistics: torch.Tensor, batch: Batch, chunk: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same in evaluation mode, with what `gradient` left in ``statistics.flat``."""
        self.model.eval()
        self.statistics.flat.copy_(statistics)
        return self._passes(batch, chunk)

    def _passes(self, batch: Batch, chunk: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows = len(batch)
        parts = -(-rows // chunk)
        sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        self.grad.zero_()
        for part in range(parts):
            inputs, targets = batch.part(rows * part // parts, rows * (part + 1) // parts)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
                outputs = self.model(inputs)
            outputs = outputs.to(self.x.dtype)
            loss = self.loss(outputs, targets)
            (loss / rows).backward()
            with torch.no_grad():
                sums += torch.stack([loss.double(), self.correct(outputs, targets).double()])
        return sums, self.grad

    @torch.no_grad()
    def require_fit(self, samples: Batch, labels: np.ndarray | None) -> None:
        """`InputError` unless the model takes such samples, and the loss is a sum over them.

        labels : those of all samples, (N,), if they are classes and the loss is the cross-entropy;
            else None, and twice the samples must have twice the loss
        """
        self.model.eval()
        inputs, targets = samples.part(0, 2)
        try:
            outputs = self.model(inputs)
            if not isinstance(outputs, torch.Tensor) or outputs.shape[:1] != targets.shape[:1]:
                raise InputError("the module must return a tensor with a row for each sample")
            outputs = outputs.to(self.x.dtype)
            if labels is not None and not 0 <= labels.min() <= labels.max() < outputs.shape[-1]:
                raise InputError(
                    f"labels go from {labels.min()} to {labels.max()}; allowed: from 0 to"
                    f" {outputs.shape[-1] - 1}, as the module has {outputs.shape[-1]} outputs"
                )
            once = self.loss(outputs, targets)
            twice = self.loss(torch.cat([outputs] * 2), torch.cat([targets] * 2))
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            shapes = f"{tuple(inputs.shape[1:])} and targets of shape {tuple(targets.shape[1:])}"
            reason = str(error).partition("\n")[0]
            raise InputError(f"cannot take features of shape {shapes}: {reason}") from error
        if once.dim() > 0:
            shape = f"not an array of shape {tuple(once.shape)}"
            raise InputError(f'loss must be one number for all samples, {shape} (reduction="sum")')
        if labels is None and abs(float(twice - 2 * once)) > CLOSE * abs(float(twice)):
            raise InputError('loss must be the sum over its samples (reduction="sum")')
