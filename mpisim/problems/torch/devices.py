"""The device that a rank computes on, and how it computes there."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

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

    The ranks of a host are dealt to its accelerators in turn. ``rank``: the `local_rank`.
    """
    if name == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda", rank % torch.cuda.device_count())
    if name == "auto":
        return torch.device("cpu")
    raise RuntimeError(f"there is no device {name!r}")


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


def seed(device: torch.device, number: int) -> None:
    """Seed what modules on ``device`` draw from.

    Not by `torch.manual_seed`: for each kind of accelerator that has not started, it formats a
    traceback, which takes longer than a pass of a small network.
    """
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index].manual_seed(number)
