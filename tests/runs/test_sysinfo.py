"""What a run says of the software and the machine."""

import subprocess
import sys

import mpisim
from mpisim.runs.host import info_text, provenance


def test_provenance_is_small_and_plain():
    facts = provenance()
    assert facts["package_version"] == mpisim.__version__
    assert all(isinstance(value, str | int) and "\n" not in str(value) for value in facts.values())


def test_info_names_everything(monkeypatch):
    monkeypatch.setenv("MPISIM_DATA", "/some/folder")
    text = info_text()
    names = (
        "mpisim",
        "Python",
        "numpy",
        "h5py",
        "HDF5",
        "MPI",
        "BLAS",
        "cores",
        "/some/folder",
        "cache",
    )
    assert all(name in text for name in names)


def test_info_does_not_start_mpi():
    code = (
        "from mpisim.runs.host import info_text; info_text();"
        "from mpi4py import MPI; assert not MPI.Is_initialized()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
