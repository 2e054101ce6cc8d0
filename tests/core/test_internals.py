"""Interfaces of Numba, llvmlite and NumPy beyond their documents, and kernels on the disk.

A failure names the library and its version. If the installed version is beyond the bounds of
setup.cfg, mend `mpisim/core/numerics`, run these tests and raise the bound.
"""

import importlib
import json
import os
import pkgutil
import random
import sys
from configparser import ConfigParser
from importlib.metadata import version

import pytest
from numba import njit
from packaging.specifiers import SpecifierSet

from mpisim.core import imports, terminal
from mpisim.core.numerics import kernel_cache, processor
from tests.comm.jobs import ROOT, ended, python

INTERNALS = {
    "numba": """
        numba.core.cgutils:create_struct_proxy numba.core.codegen:get_host_cpu_features
        numba.core.config:CPU_NAME numba.core.config:CPU_FEATURES
        numba.core.dispatcher:Dispatcher numba.core.event:Listener numba.core.event:install_listener
        numba.core.errors:TypingError numba.np.arraymath numba.np.linalg:ensure_blas
        numba.extending:intrinsic numba.extending:models.PrimitiveModel""",
    "llvmlite": """
        llvmlite.binding:get_host_cpu_name llvmlite.ir:VectorType llvmlite.ir:Undefined
        llvmlite.ir:IRBuilder.shuffle_vector llvmlite.ir:Module.declare_intrinsic""",
    "numpy": """
        numpy._core._multiarray_umath:__cpu_features__
        numpy._core._multiarray_umath:__cpu_dispatch__""",
}
EDITED = """
import sys
from pathlib import Path
import mpisim.core
mpisim.core.__path__.append(sys.argv[1])
from mpisim.core import imports, numerics
import mpisim.core.caller as caller
places = {name: Path(sys.argv[1]) / f"{name.rpartition('.')[2]}.py"
          for name in ("mpisim.core.caller", "mpisim.core.called", "mpisim.core.constant")}
original = imports.file_of
imports.file_of = lambda name: places.get(name) or original(name)
print(caller.g(1), sum(caller.g.stats.cache_hits.values()))
"""
CALLED = "from numba import njit\n@njit\ndef f(x):\n    return x + {number}\n"
CALLER = """
from numba import njit
from mpisim.core.called import f
from mpisim.core.constant import C

@njit(cache=True)
def g(x):
    return f(x) + C
"""


@pytest.mark.parametrize("library", INTERNALS)
def test_internals_of_a_library(library):
    for name in INTERNALS[library].split():
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            pytest.fail(f"{library} {version(library)} has no {name}")


@pytest.mark.parametrize("library", ["numba", "numpy"])
def test_the_installed_version_is_within_the_bounds(library):
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config["options"]["install_requires"].split("\n")
    bounds = next(line.removeprefix(f"{library} ") for line in lines if line.startswith(library))
    assert "<" in bounds and version(library) in SpecifierSet(bounds), f"{library} {bounds}"


def test_no_kernel_runs_with_a_function_that_was_edited(tmp_path, monkeypatch):
    """Numba alone would go on with the first function."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)  # so kernels are beside their modules
    (tmp_path / "caller.py").write_text(CALLER)
    for number, c, hits in ((1, 0, 0), (5, 0, 0), (5, 0, 1), (5, 3, 0)):  # a hit: from the disk
        (tmp_path / "called.py").write_text(CALLED.format(number=number))
        (tmp_path / "constant.py").write_text(f"C = {c}\n")
        assert python(EDITED, str(tmp_path)) == f"{1 + number + c} {hits}\n"


def test_the_facts_of_the_processor_follow_the_settings_of_the_libraries():
    here = processor.facts()
    assert here["cpu"] and "sse2" in here["cpu_features"].split()
    assert all("\n" not in value for value in here.values())
    code = "import json, mpisim.core.numerics.processor as p; print(json.dumps(p.facts()))"
    settings = {
        "NUMBA_CPU_NAME": "sandybridge",
        "NUMBA_CPU_FEATURES": "+sse2,+popcnt,+avx,-avx2",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": " ".join(processor.numpy_features()),
    }
    facts = json.loads(python(code, **settings))
    assert facts.pop("blas_core") in ("Nehalem", "")
    assert facts == {"cpu": "sandybridge", "cpu_features": "avx sse2", "numpy_simd": ""}


KERNEL = "def add(x, y):\n    return x + y\n"
UFUNC = """
import mpisim.core.numerics.sums
from numba import vectorize

@vectorize(["float64(float64)"], cache=True)
def half(x):
    return x / 2
"""


def imported(folder, monkeypatch, text):
    """A module of its own with this text, in the folder."""
    (folder / "kernel_for_test.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "kernel_for_test", raising=False)
    return importlib.import_module("kernel_for_test")


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """cached(): 1 + 2 by a kernel as a new process would call it, and whether it was compiled."""
    module = imported(tmp_path, monkeypatch, KERNEL)
    monkeypatch.setattr(terminal, "_reported", set())

    def call():
        kernel = njit(cache=True)(module.add)
        value = kernel(1, 2)
        return value, not kernel.stats.cache_hits

    assert [call(), call()] == [(3, True), (3, False)]
    return call


def test_a_ufunc_of_a_plugin_is_kept_too(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "halves.py").write_text(UFUNC)
    code = "import sys; sys.path[:0] = sys.argv[1:]; import halves; print(halves.half(3))"
    written = []
    for _ in range(2):  # then from the disk
        assert python(code, str(tmp_path)) == "1.5\n"
        written.append(file_of(tmp_path).stat().st_ino)
    assert written[0] == written[1]


def file_of(folder):
    [path] = folder.rglob("*.nbc")
    return path


def test_a_damaged_kernel_is_compiled_anew_with_one_line(cached, tmp_path, capsys):
    path, rng = file_of(tmp_path), random.Random(1)
    good = path.read_bytes()
    cases = [b"", good[:10], good[: len(good) // 2], good[:-1], good + b"\0"]
    for _ in range(8):
        flipped, bit = bytearray(good), rng.randrange(8 * len(good))
        flipped[bit // 8] ^= 1 << bit % 8
        cases.append(bytes(flipped))
    for content in cases:
        path.write_bytes(content)
        assert [cached(), cached()] == [(3, True), (3, False)]
    assert capsys.readouterr().err == "mpisim: damaged kernels on the disk are compiled anew\n"


def test_the_file_of_another_kernel_is_not_executed(cached, tmp_path):
    path = file_of(tmp_path)
    body = path.read_bytes()[kernel_cache.CHECK :]
    path.write_bytes(kernel_cache._check(path.with_name("other.nbc"), body) + body)
    assert cached() == (3, True)


@pytest.mark.parametrize("how", ["mode", "link", "owner", "folder"])
def test_what_another_user_could_have_written_is_not_executed(
    how, cached, tmp_path, capsys, monkeypatch
):
    path = file_of(tmp_path)
    if how == "mode":
        path.chmod(0o666)
    elif how == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    elif how == "folder":
        path.unlink()
        path.mkdir()
    else:
        status = os.stat_result((path.stat().st_mode, 0, 0, 1, 4002, 0, 0, 0, 0, 0))
        monkeypatch.setattr(kernel_cache.os, "fstat", lambda _: status)
    assert cached() == (3, True)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ([] if how in ("link", "folder") else [lines[0]])
    assert all(line.startswith("mpisim: kernels that others could write") for line in lines)


def test_kernels_of_many_folders_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(terminal, "_reported", set())
    for name in ("core", "wire"):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "kernel.nbc"
        file.touch()
        file.chmod(0o666)
        with pytest.raises(PermissionError):
            kernel_cache._read_trusted(file)
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith(f"not used, such as those in {tmp_path / 'core'}")


def test_without_a_folder_kernels_are_compiled_in_each_process(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(terminal, "_reported", set())
    monkeypatch.setattr(kernel_cache, "_enable", lambda kernel: exec("raise RuntimeError"))
    exec(compile(KERNEL, "nowhere", "exec"), space := {})
    assert njit(cache=True)(space["add"])(1, 2) == 3
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("mpisim: each process compiles its kernels")


def test_kernels_that_must_not_be_compiled_are_one_line():
    words = ["-m", "mpisim", "run", "--set", "problem.name=quadratic"]
    job = ended(sys.executable, *words, code=2, NUMBA_DISABLE_JIT="1")
    assert job.stderr.count("\n") == 1 and "NUMBA_DISABLE_JIT" in job.stderr


@pytest.mark.parametrize(
    "text",
    [
        "import json, \\\n    helper_for_test",
        "import json; from helper_for_test import(a,\n    b); c = 1",
        "if True: import helper_for_test",
        "# a comment \\\nimport helper_for_test",
    ],
)
def test_each_import_counts_wherever_it_stands(tmp_path, monkeypatch, text):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "helper_for_test.py").write_text("a = b = 1\n")
    path = tmp_path / "plugin_for_test.py"
    path.write_text(text + "\n")
    assert imports.neighbours(path) == {"helper_for_test": path.with_name("helper_for_test.py")}
    monkeypatch.delitem(sys.modules, "helper_for_test", raising=False)
    importlib.import_module("helper_for_test")
    assert {*imports.imports("plugin_for_test", path)} == {"helper_for_test"}
