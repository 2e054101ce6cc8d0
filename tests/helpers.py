"""What several tests use: small experiments, run in this process, and dense references."""

import functools
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import h5py
import numpy as np
import pytest
from mpi4py import MPI

from mpisim.comm.communicators import OneProcess
from mpisim.core import arrays
from mpisim.problems.data.find import find
from mpisim.runs.experiment import parse
from mpisim.runs.log.schema import DIGEST
from mpisim.runs.loop import End, run
from mpisim.runs.metrics import Evaluator
from mpisim.runs.record import Output
from mpisim.runs.rehearsal import Rehearsal
from mpisim.runs.setup import ProblemCache, Setup


def table(method, compressor=None, data="sample", workers=6, rounds=20, problem=None, **run):
    """The tables of an experiment."""
    tables = {
        "problem": {"name": "nonconvex-loss", "data": data, "workers": workers} | (problem or {}),
        "method": method,
        "run": {"rounds": rounds} | run,
    }
    return tables | ({"compressor": compressor} if compressor else {})


def settings(*several: str) -> list[str]:
    """The words of a command line that set them, each KEY=VALUE."""
    return [word for one in several for word in ("--set", one)]


def sampled(items: Iterable, most: int) -> list:
    """At most so many of them, drawn by the session's seed, in their order; without one all."""
    every = list(items)
    seed = os.environ.get("MPISIM_TEST_SEED")
    if seed is None or len(every) <= most:
        return every
    return [every[i] for i in sorted(random.Random(int(seed)).sample(range(len(every)), most))]


def some_of(most: int, **axes: Iterable) -> Callable:
    """The test runs for so many combinations of these values, which the session's seed draws."""

    def mark(test: Callable) -> Callable:
        for name, values in axes.items():
            test = pytest.mark.parametrize(name, values)(test)
        return pytest.mark.drawn(most)(test)

    return mark


def without_rehearsal(patch: pytest.MonkeyPatch) -> None:
    """Run what is charged only, for tests that count calls."""
    patch.setattr("mpisim.runs.loop.rehearse", lambda setup: Rehearsal({}, 0.0))
    patch.setattr("mpisim.comm.star.Star._rehearse", lambda star, rows: None)


def run_tables(tables: dict, log: Path | None = None, comm=MPI.COMM_SELF, **output) -> End:
    """Run an experiment in this process."""
    return run(parse(tables), Output(log, **output), comm)


def set_up(tables: dict, cache: ProblemCache | None = None) -> Setup:
    """An experiment in this process, before its first round."""
    return Setup(parse(tables), OneProcess(), cache)


def loaded(tables: dict, n=6, dtype="float64"):
    """The problem of an experiment, with all n workers, of the seed 1."""
    return parse(tables).problem.loaded(n, 0, n, 1, np.dtype(dtype))


def before_row(patch: pytest.MonkeyPatch, act: Callable[[int], object]) -> None:
    """From now on, ``act(k)`` comes before the row of each round k."""
    original = Evaluator.row

    def row(self, k, *arguments):
        act(k)
        return original(self, k, *arguments)

    patch.setattr(Evaluator, "row", row)


def calls_of(patch: pytest.MonkeyPatch, owner: object, name: str) -> list[tuple]:
    """The arguments of each call of a function, from now on."""
    original, calls = getattr(owner, name), []

    def function(*arguments, **options):
        calls.append(arguments)
        return original(*arguments, **options)

    patch.setattr(owner, name, function)
    return calls


def attributes(log: str | os.PathLike) -> dict:
    """All attributes of a log, read with plain h5py."""
    with h5py.File(log, "r") as file:
        return dict(file.attrs)


def columns(log: Path) -> dict[str, np.ndarray]:
    """All columns of a log, read with plain h5py."""
    with h5py.File(log, "r") as file:
        return {name: data[:] for name, data in file["rounds"].items()}


def forged(log: str | os.PathLike) -> h5py.File:
    """A log to be changed, without the digest that would tell."""
    file = h5py.File(log, "r+")
    file.attrs.pop(DIGEST, None)
    return file


def cut_rows(file: h5py.File, rows: int) -> None:
    """Leave the first rows of an open log."""
    for name, column in list(file["rounds"].items()):
        values, attributes = column[:rows], dict(column.attrs)
        del file[column.name]
        file["rounds"][name] = values
        file["rounds"][name].attrs.update(attributes)


@functools.cache
def dense(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N, d) and labels -1 / +1, from the text file, with no code of the package."""
    import bz2
    import gzip
    import lzma

    from sklearn.datasets import load_svmlight_file  # which takes longer than all other modules

    path = find(data)
    opener = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix, open)
    features = {"sample": 123, "mushrooms": 112, "a9a": 123}[data]
    with opener(path, "rb") as file:
        rows, labels = load_svmlight_file(file, n_features=features, zero_based=False)
    result = rows.toarray(), np.where(labels == labels.min(), -1.0, 1.0)
    for array in result:
        array.flags.writeable = False  # all tests share them
    return result


FALLBACKS = {"compressed", "Placed.decoded", "Placed.total"}  # whole vectors go by the host


class Crossings:
    """Bytes that are copied between a device and the host, by the function that asks for it.

    Tensors on the CPU stand for those on a device: nothing counts as the host's memory. Modules
    that are loaded later are not watched.
    """

    def __init__(self, monkeypatch):
        self.to_host, self.to_device = Counter(), Counter()
        monkeypatch.setattr(arrays, "HOST_MEMORY", ())
        for copy, counts in ((arrays.to_host, self.to_host), (arrays.to_device, self.to_device)):
            for module in [m for name, m in sys.modules.items() if name.startswith("mpisim.")]:
                if module is not arrays and vars(module).get(copy.__name__) is copy:
                    monkeypatch.setattr(module, copy.__name__, self._counting(copy, counts))

    @staticmethod
    def _counting(copy, counts):
        def counted(v, *device):
            if arrays.is_tensor(v) or device:
                counts[sys._getframe(1).f_code.co_qualname] += v.nbytes
            return copy(v, *device)

        return counted

    def clear(self):
        """Count from zero."""
        self.to_host.clear()
        self.to_device.clear()

    @property
    def names(self) -> set[str]:
        """The functions that have copied anything."""
        return {*self.to_host, *self.to_device}
