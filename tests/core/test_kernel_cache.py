"""Compiled kernels on the disk: damaged ones, and those that another user could have written."""

import importlib.util
import os
import random
import subprocess
import sys

import pytest
from numba import njit

from mpisim.core import terminal
from mpisim.core.numerics import kernel_cache
from tests.comm.jobs import environment

KERNEL = "def add(x, y):\n    return x + y\n"


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """cached(): 1 + 2 by a kernel as a new process would call it, and whether it was compiled."""
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(terminal, "_reported", set())

    def call():
        kernel = njit(cache=True)(module.add)
        value = kernel(1, 2)
        return value, not kernel.stats.cache_hits

    assert [call(), call()] == [(3, True), (3, False)]
    return call


def file_of(folder):
    [path] = folder.rglob("*.nbc")
    return path


def test_a_damaged_kernel_is_compiled_anew_with_one_line(cached, tmp_path, capsys):
    path, rng = file_of(tmp_path), random.Random(1)
    good = path.read_bytes()
    cases = [b"", good[:10], good[: len(good) // 2], good[:-1], good + b"\0"]
    for _ in range(12):
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
        status = path.stat()
        monkeypatch.setattr(
            kernel_cache.os,
            "fstat",
            lambda _: os.stat_result((status.st_mode, 0, 0, 1, 4002, 0, 0, 0, 0, 0)),
        )
    assert cached() == (3, True)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ([] if how in ("link", "folder") else [lines[0]])
    assert all(line.startswith("mpisim: kernels that others could write") for line in lines)


def test_without_a_folder_kernels_are_compiled_in_each_process(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(terminal, "_reported", set())
    monkeypatch.setattr(kernel_cache, "_enable", lambda kernel: exec("raise RuntimeError"))
    exec(compile(KERNEL, "nowhere", "exec"), space := {})
    assert njit(cache=True)(space["add"])(1, 2) == 3
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("mpisim: each process compiles its kernels")


def test_kernels_that_must_not_be_compiled_are_one_line():
    job = subprocess.run(
        [sys.executable, "-m", "mpisim", "run", "--set", "problem.name=quadratic"],
        env=environment() | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert job.returncode == 2 and job.stderr.count("\n") == 1
    assert "NUMBA_DISABLE_JIT" in job.stderr
