"""The vectors of a test do not depend on the tests that ran before it."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _rng_starts_again(request):
    if hasattr(request.module, "RNG"):
        request.module.RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state
