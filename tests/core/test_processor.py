"""What the libraries may compute with."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from mpisim.core.numerics import processor


def test_facts_are_lines_of_text():
    facts = processor.facts()
    assert facts["cpu"] and "sse2" in facts["cpu_features"].split()
    assert all("\n" not in value for value in facts.values())


def test_facts_follow_the_settings_of_the_libraries():
    code = "import json, mpisim.core.numerics.processor as p; print(json.dumps(p.facts()))"
    settings = {
        "NUMBA_CPU_NAME": "sandybridge",
        "NUMBA_CPU_FEATURES": "+sse2,+popcnt,+avx,-avx2",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": " ".join(processor.numpy_features()),
    }
    run = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | settings, stdout=subprocess.PIPE, check=True
    )
    facts = json.loads(run.stdout)
    assert (facts["cpu"], facts["cpu_features"], facts["numpy_simd"]) == (
        "sandybridge",
        "avx sse2",
        "",
    )
    assert facts["blas_core"] in ("Nehalem", "")
