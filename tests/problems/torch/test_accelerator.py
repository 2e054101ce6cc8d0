"""Runs on an accelerator; all are skipped where PyTorch has none."""

import sys

import numpy as np
import pytest
import tomli_w

from tests.comm.jobs import ended
from tests.helpers import run_tables, without_rehearsal
from tests.methods.test_tensors import KEYS, pairs
from tests.problems.torch.support import network
from tests.resumes import differences

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator")


# Scaled signs of SCAFFOLD are those of rounding: gradients that differ by 1e-16 change its losses
# by 1e-3, on the CPU, too.
PAIRS = [pair for pair in pairs() if pair != ("scaffold", {"name": "scaled-sign"})]


@pytest.fixture(autouse=True)
def once(monkeypatch):
    without_rehearsal(monkeypatch)


@pytest.mark.drawn(5)
@pytest.mark.parametrize(("method", "compressor"), PAIRS, ids=str)
def test_the_bits_and_to_rounding_the_losses_of_the_cpu(method, compressor):
    keys = {"name": method} | KEYS.get(method, {})
    run = {"workers": 6, "dtype": "float64", "wire": "float64"}
    devices = "cpu", "accelerator"
    tables = (network(keys, compressor, device=device, **run) for device in devices)
    here, there = (run_tables(one, keep=True).columns for one in tables)
    for name, values in here.items():
        if name.startswith("bits"):
            assert np.array_equal(there[name], values), name
        elif not name.startswith("time_"):
            assert np.allclose(there[name], values, rtol=1e-8, atol=1e-14), name


@pytest.mark.parametrize("arithmetic", [{}, {"tf32": True}, {"mixed": True}], ids=str)
def test_a_run_repeats_bit_by_bit(arithmetic, tmp_path):
    """With augmentation, and convolutions of many channels, which cuDNN has algorithms for."""
    tables = network({"name": "cd-adam", "batch": 9}, {"name": "scaled-sign"}, augment=True)
    tables["problem"] |= {"device": "accelerator", "model": "resnet18", "width": 0.5} | arithmetic
    paths = [tmp_path / f"{i}.h5" for i in (1, 2)]
    for path in paths:
        run_tables(tables, path)
    assert differences(*paths) == []


def test_processes_side_by_side(tmp_path):
    """CUDA does not survive a fork: the process that starts the others must not have begun it."""
    tables = network({"name": "cd-adam", "batch": 9}, {"name": "scaled-sign"}, device="accelerator")
    file = tmp_path / "sweep.toml"
    file.write_text(tomli_w.dumps(tables | {"sweep": {"run": {"seed": [1, 2, 3]}}}))
    command = "-m", "mpisim", "sweep", str(file), "--jobs", "2", "--out", str(tmp_path / "logs")
    assert "3 points: 3 done" in ended(sys.executable, *command).stdout
