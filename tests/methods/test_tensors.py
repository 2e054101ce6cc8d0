"""Every method with its vectors in tensors: the same bits and steps as with NumPy, to rounding.

Tensors on the CPU stand for those on a device: nothing counts as the host's memory.
"""

import itertools

import numpy as np
import pytest

from mpisim.comm.communicators import OneProcess
from mpisim.core import arrays
from mpisim.core.arrays import COMMON, COPIES, MESSAGE
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from mpisim.problems.base import problem
from mpisim.problems.linear_models import NonconvexLoss
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup
from tests import resumes
from tests.helpers import columns, run_tables, table, without_rehearsal

torch = pytest.importorskip("torch")
KEYS = resumes.KEYS | {"cd-adam": {"batch": 9}, "naive-amsgrad": {"variant": "code"}}
BIASED = [{"name": "scaled-sign"}, {"name": "topk", "k": 7}]
UNBIASED = [{"name": "randk", "k": 11}, {"name": "qsgd", "s": 4}]
OTHERS = [{"name": "natural"}, {"name": "identity"}, {"name": "permk"}, {"name": "rank-k", "k": 2}]
ONLY = {"tamuna": {"name": "pattern", "s": 2}, "gd": {"name": "identity"}}
ONLY["powersgd"] = ONLY["gd"]
ONLY["compressed-scaffnew"] = {"name": "permk", "groups": 3}
ASYNCHRONOUS = ("asynchronous-sgd", "rennala", "ringmaster", "fedbuff", "shadowheart")
# their keys come from omega
FITTED = ("dasha", "diana", "vr-diana", "ef21-p", "adiana", "canita", "locodl", "byz-dasha")
FITTED += ("shadowheart",)


def pairs():
    for method in METHODS:
        if method.startswith("fednl"):  # needs Hessians
            continue
        if method in ONLY:
            yield method, ONLY[method]
            continue
        most = 1 if method in ASYNCHRONOUS else None  # lengths that do not vary
        fitting = UNBIASED[:most] + ([] if method.startswith(FITTED) else BIASED[:most])
        yield from ((method, spec) for spec in fitting)
    yield from itertools.product(("cd-adam", "marina"), OTHERS)


@pytest.fixture(scope="module")
def on_tensors():
    """The problem "on-tensors": nonconvex-loss, with x and gradients in tensors."""
    from mpisim.core.numerics.tensors import Tensors

    def in_tensors(method):
        return lambda self, *arguments: torch.from_numpy(method(self, *arguments))

    class OnTensors(NonconvexLoss):
        arrays = Tensors(torch.device("cpu"))

        def point(self, x):
            return super().point(x.numpy())

        def losses_and_gradients(self, x):
            losses, gradients = super().losses_and_gradients(x)
            return losses, torch.from_numpy(gradients)

    wrapped = "initial_point", "gradients", "gradients_of", "batch_gradients", "batch_changes"
    wrapped += ("batch_gradients_of",)
    for name in wrapped:
        setattr(OnTensors, name, in_tensors(getattr(NonconvexLoss, name)))
    problem("on-tensors")(OnTensors)
    yield
    del PROBLEMS["on-tensors"]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, on_tensors):
    """A device with memory of its own."""
    monkeypatch.setattr(arrays, "HOST_MEMORY", ())
    without_rehearsal(monkeypatch)


def experiment(method, compressor, kind, rounds=6, **run):
    keys = {"name": method, "stepsize": 0.02} | KEYS.get(method, {})
    run = {"wire": "float64"} | run
    return table(keys, compressor, rounds=rounds, problem={"name": kind}, **run)


@pytest.mark.drawn(10)
@pytest.mark.parametrize(
    ("method", "compressor"),
    list(pairs()),
    ids=lambda spec: spec if type(spec) is str else spec["name"],
)
def test_the_same_bits_and_steps(method, compressor, tmp_path):
    paths = [tmp_path / f"{kind}.h5" for kind in ("nonconvex-loss", "on-tensors")]
    ends = [run_tables(experiment(method, compressor, path.stem), path) for path in paths]
    here, there = map(columns, paths)
    for name, values in here.items():
        if name.startswith("bits"):
            assert np.array_equal(there[name], values)
        elif not name.startswith("time_"):
            assert np.allclose(there[name], values, rtol=1e-10, atol=0)
    x, y = (end.x for end in ends)
    assert type(y) is np.ndarray and np.abs(y - x).max() <= 1e-11 * np.abs(x).max()


VALUE, D, M = 8, 123, 6  # bytes of a value on the wire; "sample" has D features
ROW = -(-D // 8)  # bytes of D signs
CROSSINGS = [  # of a round of ef21: up of all workers, and down, each way
    (
        {"name": "scaled-sign"},
        {MESSAGE: (M + 1) * (ROW + VALUE)},
        {MESSAGE: (M + 1) * (ROW + VALUE)},
    ),
    ({"name": "topk", "k": 7}, {MESSAGE: (M + 1) * 7 * (8 + VALUE)}, None),
    (
        {"name": "randk", "k": 11},
        {MESSAGE: (M + 1) * 11 * VALUE},
        {MESSAGE: (M + 1) * 11 * VALUE, COMMON: (M + 1) * 11 * 8},
    ),
    ({"name": "identity"}, {MESSAGE: (M + 1) * D * VALUE}, None),
]


@pytest.mark.parametrize(("compressor", "out", "back"), CROSSINGS, ids=lambda x: str(x)[:24])
def test_only_packed_messages_cross_in_a_round(compressor, out, back):
    setup = Setup(parse(experiment("ef21-2way", compressor, "on-tensors")), OneProcess())
    for _ in range(3):
        COPIES.reset()
        setup.state.step(setup.step.gamma)
    assert {reason: size for reason, (_, size) in COPIES.to_host.items()} == out
    result = {reason: size for reason, (_, size) in COPIES.to_device.items()}
    # a device has the scales of what it packs from the host, which rounds them to the wire
    scales = (M + 1) * VALUE if compressor["name"] == "scaled-sign" else 0
    assert result == (back or out) | {MESSAGE: (back or out)[MESSAGE] + scales}
