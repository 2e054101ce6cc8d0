"""Every method with its vectors in tensors: the same bits and steps as with NumPy, to rounding.

Tensors on the CPU stand for those on a device: nothing counts as the host's memory.
"""

import itertools

import numpy as np
import pytest

from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from mpisim.problems.base import problem
from mpisim.problems.linear_models import NonconvexLoss
from tests import helpers, resumes
from tests.helpers import FALLBACKS, Crossings, columns, run_tables, set_up, table

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
        return lambda self, *args, **keys: torch.from_numpy(method(self, *args, **keys))

    class OnTensors(NonconvexLoss):
        arrays = Tensors(torch.device("cpu"))

        def point(self, x):
            return super().point(x.numpy())

        def losses_and_gradients(self, x):
            losses, gradients = super().losses_and_gradients(x)
            return losses, torch.from_numpy(gradients)

    for name in ("initial_point", "gradients", "batch_gradients", "batch_changes"):
        setattr(OnTensors, name, in_tensors(getattr(NonconvexLoss, name)))
    problem("on-tensors")(OnTensors)
    yield
    del PROBLEMS["on-tensors"]


@pytest.fixture(autouse=True)
def crossings(monkeypatch, on_tensors):
    """A device with memory of its own."""
    helpers.without_rehearsal(monkeypatch)
    return Crossings(monkeypatch)


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
CROSSINGS = [  # of a message of ef21, each way; a round has those of all workers, and one down
    # a device has the scales of what it packs from the host, which rounds them to the wire
    ({"name": "scaled-sign"}, ROW + VALUE, ROW + 2 * VALUE),
    ({"name": "topk", "k": 7}, 7 * (8 + VALUE), 7 * (8 + VALUE)),
    ({"name": "randk", "k": 11}, 11 * VALUE, 11 * (8 + VALUE)),  # the drawn coordinates, too
    ({"name": "identity"}, D * VALUE, D * VALUE),
]


@pytest.mark.parametrize(("compressor", "out", "back"), CROSSINGS, ids=lambda x: str(x)[:24])
def test_only_packed_messages_cross_in_a_round(compressor, out, back, crossings):
    setup = set_up(experiment("ef21-2way", compressor, "on-tensors"))
    for _ in range(3):
        crossings.clear()
        setup.state.step(setup.step.gamma)
    assert not FALLBACKS & crossings.names
    assert crossings.to_host.total() == (M + 1) * out
    assert crossings.to_device.total() == (M + 1) * back
