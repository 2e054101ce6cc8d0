"""What mpirun, srun and the like tell the processes that they start, before MPI starts."""

from __future__ import annotations

import os

# The rank in the job: Open MPI, PMIx, MPICH and others with PMI, MVAPICH, Slurm, PALS, Flux.
RANKS = (
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
)
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def launched() -> bool:
    """Whether a launcher has started this process."""
    return any(os.environ.get(name) for name in (*RANKS, *SIZES))


def rank() -> int:
    """The rank of this process; 0 without a launcher."""
    return next((int(os.environ[v]) for v in RANKS if os.environ.get(v, "").isdigit()), 0)


def size() -> int:
    """How many ranks the launcher has started; 1 where it does not say."""
    return next((int(os.environ[v]) for v in SIZES if os.environ.get(v, "").isdigit()), 1)
