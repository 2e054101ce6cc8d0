"""Settings under which the libraries compute as on another processor."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

from mpisim.core.numerics import processor

MODERN = ("X86_V3", "AVX2", "FMA3")  # what NumPy calls the instructions of a Haswell


@dataclasses.dataclass(frozen=True)
class Setting:
    """Another processor.

    needs : instruction sets that this one must have, by LLVM's names
    environment : variables, without NPY_DISABLE_CPU_FEATURES
    kept : what NumPy keeps of its dispatched instruction sets
    """

    name: str
    needs: tuple[str, ...] = ()
    environment: dict[str, str] = dataclasses.field(default_factory=dict, hash=False)
    kept: tuple[str, ...] = ()

    def lacks(self) -> tuple[str, ...]:
        """What this processor lacks."""
        return tuple(sorted(set(self.needs) - set(processor.features())))

    def digests(self, dense: Path, extent: str, folder: Path) -> dict[str, str]:
        """`experiments.digests` in a process of this setting, with a cache of its own."""
        variables = dict(self.environment)
        if variables:
            off = (f for f in processor.numpy_features() if f not in self.kept)
            variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(off)
        command = [sys.executable, "-m", "tests.processors.experiments", str(dense), extent]
        environment = os.environ | variables | {"MPISIM_CACHE": str(folder / self.name)}
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        return json.loads(run.stdout)


HOST = Setting("host")


def _setting(name: str, needs: str, core: str, *kept: str, **more: str) -> Setting:
    features = needs.split()
    environment = {"NUMBA_CPU_NAME": name, "OPENBLAS_CORETYPE": core} | more
    environment["NUMBA_CPU_FEATURES"] = ",".join(f"+{one}" for one in features)
    return Setting(name, tuple(features), environment, kept)


# 2008: vectors of two numbers, no fused multiply-add; glibc computes without either
GLIBC = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA"}
NEHALEM = _setting("nehalem", "sse4.2", "Nehalem", **GLIBC)
HASWELL = _setting("haswell", "avx2 fma", "Haswell", *MODERN)  # 2013: of four, and fused
AVX512 = "avx512f avx512dq avx512bw avx512vl"  # 2017: of eight numbers
KEPT = (*MODERN, "X86_V4", "AVX512F", "AVX512CD", "AVX512_SKX")
SKYLAKE = _setting("skylake-avx512", f"{AVX512} fma", "SkylakeX", *KEPT)
OTHERS = (NEHALEM, HASWELL, SKYLAKE)
