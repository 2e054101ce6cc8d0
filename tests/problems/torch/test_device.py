"""Devices, without an accelerator, and rows of the log."""

import contextlib

import numpy as np
import pytest

from mpisim.analysis.verify import checks
from mpisim.core.arrays import is_tensor
from mpisim.core.errors import InputError
from mpisim.runs.experiment import parse
from mpisim.runs.log import reader
from tests.helpers import FALLBACKS, Crossings, columns, run_tables, set_up, some_of
from tests.problems.torch.support import network

torch = pytest.importorskip("torch")
networks = pytest.importorskip("mpisim.problems.torch.network")
MODELS = ["resnet18", "wrn-16-4", "vgg16", "small-cnn", "linear"]
CPU = torch.device("cpu")
ADAM, SIGN = {"name": "cd-adam", "batch": 9}, {"name": "scaled-sign"}


@pytest.fixture
def elsewhere(monkeypatch):
    """PyTorch's device "meta" in an accelerator's place.

    It computes no values, but refuses operations on tensors of two devices, as an accelerator
    does. Reading a number of it, which would wait for an accelerator, raises. What is copied from
    it is zeros, or else what is valid in a message, and the shapes are noted.
    """
    shapes = []

    def read(tensor):
        shapes.append(tuple(tensor.shape))
        result = torch.zeros(tensor.shape, dtype=tensor.dtype)
        if tensor.dtype == torch.uint8:  # packed signs, with ones as padding
            result += 255
        elif tensor.dtype == torch.int64:  # indices, ascending
            result += torch.arange(tensor.shape[-1])
        return result

    monkeypatch.setattr(networks, "device_of", lambda name, rank: torch.device("meta"))
    monkeypatch.setattr(torch.Tensor, "cpu", read)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
    return shapes


@some_of(3, model=MODELS)
def test_all_of_a_gradient_is_on_the_device(model, elsewhere, monkeypatch):
    """And nothing waits for it: the sums of all workers are read, once, and nothing else.

    In a round no images are sent to it.
    """
    tables = network(ADAM, SIGN, augment=True)
    tables["problem"] |= {"device": "auto", "model": model}
    problem = parse(tables).problem.loaded(4, 1, 2, 1, np.dtype("float32"))
    assert problem.identity.endswith("(meta)")
    x, sent, to = problem.initial_point(), [], torch.Tensor.to

    def noted(tensor, *args, **kwargs):
        out = to(tensor, *args, **kwargs)
        if out.device != tensor.device:
            sent.append((tuple(tensor.shape), tensor.dtype))
        return out

    monkeypatch.setattr(torch.Tensor, "to", noted)
    for work, sums in (
        (lambda: problem.losses_and_gradients(x)[1], [(2, 2)]),
        (lambda: problem.test(x)[1], [(2, 2)]),
        (lambda: problem.batch_gradients(x, np.zeros((2, 5), np.int64)), []),
    ):
        elsewhere.clear()
        sent.clear()
        assert work().shape == (2, problem.d)
        assert elsewhere == sums
    assert sent == [((2, 5, 3), torch.int64), ((2, 5), torch.int64)]  # moves, and sample numbers
    vector = problem.flat_model
    tensors = [vector.x, vector.grad, vector.statistics.flat, *vector.model.buffers()]
    tensors += [t for p in vector.model.parameters() for t in (p, p.grad)]
    assert {t.device.type for t in tensors} == {"meta"}
    assert {shard.features.dtype for shard in problem.shards} == {torch.uint8}


OF_MPI = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"]
LAUNCHERS = [*OF_MPI, "PALS_LOCAL_RANKID", "FLUX_TASK_LOCAL_ID", "SLURM_LOCALID"]


def test_the_launcher_says_the_rank_on_the_host():
    assert networks.local_rank({}) == 0
    assert [networks.local_rank({name: "3"}) for name in LAUNCHERS] == [3] * 6
    # mpirun in a batch job of Slurm, and a variable without a number
    for own, rank in (("3", 3), ("", 1)):
        assert networks.local_rank({"SLURM_LOCALID": "1", LAUNCHERS[0]: own}) == rank


@pytest.mark.parametrize(("devices", "dealt"), [(1, [0, 0, 0]), (2, [0, 1, 0]), (8, [0, 1, 2])])
def test_ranks_are_dealt_to_the_accelerators(devices, dealt, monkeypatch):
    device_of = networks.device_of
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    assert [device_of("auto", rank).index for rank in range(3)] == dealt
    assert device_of("accelerator", 2) == torch.device("cuda", dealt[-1])
    assert device_of("cpu", 2) == CPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of("cpu", 3) == device_of("auto", 3) == CPU
    with pytest.raises(InputError, match=r"^problem\.device: there is no device 'accelerator'"):
        device_of("accelerator", 0)


KINDS = [
    ("cd-adam", {"batch": 9}, {"name": "scaled-sign", "layerwise": True}),
    ("ef-amsgrad", {"batch": 9, "variant": "code"}, {"name": "topk", "k": 0.01}),
    ("vr-marina", {"batch": 9, "p": 0.5}, {"name": "randk", "k": 100}),
    ("pp-marina", {"p": 0.5, "participants": 2}, {"name": "rand-tau", "tau": 50.0}),
    ("vr-diana", {"batch": 9}, {"name": "quant-plus", "beta": 50.0}),
    ("dasha-mvr", {"batch": 9}, {"name": "natural"}),
]


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("method", "keys", "compressor"), KINDS)
def test_all_of_a_round_is_on_the_device(method, keys, compressor, elsewhere):
    tables = network({"name": method} | keys, compressor)
    tables["problem"] |= {"device": "auto", "model": "linear"}
    state = set_up(tables).state
    for _ in range(4):
        state.step(0.01)
    values = state.estimator.state() | state.optimizer.state() | {"x": state.x}
    vectors = [one for one in values.values() if np.ndim(one) > 0 or is_tensor(one)]
    assert {vector.device.type for vector in vectors} == {"meta"}


def test_a_network_on_a_device_is_the_one_on_the_host(monkeypatch):
    tables = network(ADAM, SIGN, rounds=4, columns=["pi"])
    here = run_tables(tables, keep=True).columns
    crossings = Crossings(monkeypatch)
    there = run_tables(tables, keep=True).columns
    for name in ("loss", "grad_norm_sq", "bits_up", "bits_down", "pi_up", "pi_code", "test_loss"):
        assert there[name] == pytest.approx(here[name], rel=1e-4, nan_ok=True)
    assert crossings.names and not FALLBACKS & crossings.names


def linear(method, compressor=None, log_samples=0, **more):
    tables = network(method, compressor, **more)
    tables["problem"] |= {"model": "linear", "log_samples": log_samples}
    return tables


RANDK = {"name": "randk", "k": 9}
EVERY = [  # method, run.log_every, the log's; 88 samples, so 88 / (4 x 9) rounds an epoch
    (ADAM, SIGN, {}, 5, "2 epochs"),
    ({"name": "cd-adam", "batch": 0.5}, SIGN, {}, 4, "2 epochs"),
    (ADAM, SIGN, {"log_every": 3}, 3, "run.log_every, or its default"),
    ({"name": "gd"}, None, {}, 1, "every round"),
    ({"name": "vr-marina", "batch": 22, "p": 0.5}, RANDK, {}, 2, "2 epochs"),
]


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("method", "compressor", "given", "every", "source"), EVERY)
def test_rows_are_2_epochs_apart(method, compressor, given, every, source, tmp_path):
    path, part = tmp_path / "log.h5", tmp_path / "part.h5"
    tables = linear(method, compressor, rounds=11, **given)
    run_tables(tables, path)
    mine = columns(path)
    assert mine["round"].tolist() == sorted({*range(0, 12, every), 11})
    log = reader.read(path)
    assert (log.attrs["log_every"], log.attrs["log_every_source"]) == (every, source)
    assert log.config["run"].get("log_every") == given.get("log_every")
    assert not [problem for check in checks(log) for problem in check.problems]
    run_tables(linear(method, compressor, rounds=7, **given), part)
    run_tables(tables, part, resume=True)
    resumed = columns(part)
    assert resumed["round"][-1] == 11 and resumed["loss"][-1] == mine["loss"][-1]


@pytest.mark.parametrize("method", [{"name": "gd"}, {"name": "gd", "batch": 9}])
def test_rows_judged_on_some_samples_leave_the_method_alone(method):
    """Also one whose full gradients are those that rows need."""
    tables = (linear(method, rounds=4, log_every=2, log_samples=judged) for judged in (0, 20))
    full, some = (run_tables(one, keep=True) for one in tables)
    assert np.array_equal(full.x, some.x)
    calls, losses = "oracle_calls", (full.columns["loss"], some.columns["loss"])
    assert np.array_equal(full.columns[calls], some.columns[calls])
    assert not np.isclose(*losses, rtol=1e-4).any()


def test_they_are_the_first_of_each_worker():
    specs = (parse(linear({"name": "gd"}, log_samples=count)).problem for count in (20, 0))
    few, full = (spec.loaded(4, 1, 2, 1, np.dtype("float64")) for spec in specs)
    x = full.initial_point()
    full.shards = full.judged = [shard.first(5) for shard in full.shards]
    losses, gradients = few.losses_and_gradients(x)
    wanted = full.losses_and_gradients(x)
    assert np.array_equal(losses, wanted[0]) and np.array_equal(gradients, wanted[1])
    assert few.tests == 20 and [len(batch) for batch in few.test_shards] == [5, 5]
    assert np.array_equal(few.test(x)[0][:, 0], full.test(x)[0][:, 0])
