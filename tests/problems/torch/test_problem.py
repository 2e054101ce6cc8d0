"""The problem `torch`: gradients, batch norm, reruns, resume, ranks."""

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.core.rng import Draw, Streams
from mpisim.problems.torch import samples
from mpisim.problems.torch.samples import SAMPLES, Samples
from mpisim.runs.experiment import parse
from mpisim.runs.identity import executed_by
from tests.comm.jobs import mpirun, needs_mpirun
from tests.helpers import calls_of, columns, dense, loaded, run_tables, table
from tests.problems.torch.support import network

torch = pytest.importorskip("torch")
GD = {"name": "gd", "stepsize": 0.01}
CD_ADAM, SIGN = {"name": "cd-adam", "batch": 9}, {"name": "scaled-sign"}


def test_samples_and_the_version_of_pytorch_count(monkeypatch):
    """The first samples alone, and those that have last been registered under a name."""
    tables = network(GD)
    tables["problem"] |= {"data": "mine", "samples": 60, "model": "linear"}
    experiment = parse(tables)
    assert "library torch" in executed_by(experiment)
    images, labels, digests = np.zeros((70, 3, 8, 8), np.uint8), np.arange(70) % 2, []
    monkeypatch.setattr(samples, "SAMPLES", dict(SAMPLES))
    for number in (0, 0, 69):  # the last image is not used
        images[number] += 1
        samples.data_set("mine")(lambda: Samples(images, labels, images[:9], labels[:9], 2))
        (digest,) = experiment.problem.digests()
        assert f"sha256:{digest}" in loaded(tables, 4).identity
        digests.append(digest)
    assert digests[0] != digests[1] == digests[2]


BAD = [
    ("model", "resnet", ""),
    ("data", "cifar", ""),
    ("chunk", 1, ""),
    ("width", 0.0, ""),
    ("log_samples", 7, r"7 .* at least 2 n = 8"),
    ("pool", 33, r"33 .* at most 32"),
    ("workers", 91, "91 is not allowed"),
]


@pytest.mark.parametrize(("key", "value", "line"), BAD)
def test_bad_values_are_one_line(key, value, line):
    tables = network(GD)
    tables["problem"][key] = value
    with pytest.raises(InputError, match=rf"problem\.{key}: {line}"):
        loaded(tables, tables["problem"]["workers"])


def test_images_are_averaged_over_whole_squares_and_normalised():
    """The last row and columns are left out; a channel that is the same everywhere is 0."""
    from mpisim.problems.torch.network import normalisation

    images = np.random.default_rng(0).integers(0, 256, (9, 2, 5, 8)).astype(np.uint8)
    images[:, 1] = 7
    blocks = [[images[:, :, i : i + 2, j : j + 2] for j in (0, 2, 4, 6)] for i in (0, 2)]
    wanted = np.array([[block.mean(axis=(2, 3)) for block in row] for row in blocks])
    pooled = samples.pooled(images, 2)
    assert np.array_equal(pooled, np.rint(wanted.transpose(2, 3, 0, 1)))
    mean, inverse = normalisation(pooled, np.dtype("float64"))
    seen = (pooled - mean) * inverse
    assert np.allclose(seen.mean(axis=(0, 2, 3)), 0) and (seen[:, 1] == 0).all()
    assert np.allclose(seen[:, 0].std(), 1)


@pytest.fixture
def logistic_network(monkeypatch):
    """The sample's logistic regression, written as a network with outputs 0 and a.x."""
    from mpisim.problems.torch.models import MODELS

    class Margin(torch.nn.Module):
        def __init__(self, features):
            super().__init__()
            self.a = torch.nn.Linear(features, 1, bias=False)

        def forward(self, rows):
            margins = self.a(rows)
            return torch.cat([torch.zeros_like(margins), margins], 1)

    rows, labels = dense("sample")
    labels = (labels > 0).astype(np.int64)
    data = Samples(rows, labels, rows[:100], labels[:100], 2)
    monkeypatch.setitem(SAMPLES, "rows", lambda: data)
    monkeypatch.setitem(MODELS, "margin", lambda shape, classes, width: Margin(shape[0]))
    tables = network(GD, workers=6)
    tables["problem"] |= {"model": "margin", "data": "rows", "samples": 0, "pool": 1}
    return tables


def test_a_linear_model_is_logistic_regression(logistic_network, monkeypatch):
    ours, expected = loaded(logistic_network), loaded(table(GD, problem={"name": "logistic"}))
    x = np.random.default_rng(0).normal(size=ours.d)
    assert ours.d == expected.d and np.array_equal(ours.rows, expected.rows)
    losses, gradients = map(np.asarray, ours.losses_and_gradients(x))
    assert losses == pytest.approx(expected.losses(x), rel=1e-12)
    assert np.abs(gradients - expected.gradients(x)).max() <= 1e-12
    batch = np.random.default_rng(1).integers(0, 200, (6, 10))
    drawn = np.asarray(ours.batch_gradients(x, batch))
    assert np.abs(drawn - expected.batch_gradients(x, batch)).max() <= 1e-12
    rows, labels = dense("sample")
    margins, (shares, slopes) = labels * (rows @ x), ours.test(x)
    tests = margins[:100]
    right = (tests > 0) | ((tests == 0) & (labels[:100] < 0))  # the first of two equal outputs
    wanted = [(margins > 0)[: 6 * 266].mean(), np.logaddexp(0, -tests).mean(), right.mean()]
    assert shares.sum(axis=0) == pytest.approx(wanted, rel=1e-12)
    slope = -(labels[:100] / (1 + np.exp(tests))) @ rows[:100] / 100
    assert np.abs(np.asarray(slopes).sum(axis=0) - slope).max() <= 1e-12
    calls = calls_of(monkeypatch, ours.flat_model, "gradient")  # of the drawn clients alone
    some = np.asarray(ours.gradients(x, members=np.array([1, 4])))
    assert some.tobytes() == gradients[[1, 4]].tobytes()
    assert [len(batch) for batch, *_ in calls] == ours.rows[[1, 4]].tolist()


@pytest.mark.parametrize("model", ["resnet18", "wrn-16-4", "small-cnn"])
def test_finite_differences(model):
    """f_i is a function of x alone, batch norm included, and these are its gradients."""
    tables = network(GD, workers=2)
    tables["problem"]["model"] = model
    problem = loaded(tables, 2)
    x, random = np.asarray(problem.initial_point()), np.random.default_rng(0)
    losses, gradients = problem.losses_and_gradients(x)
    v, h = random.normal(size=problem.d), 1e-8  # no ReLU changes its side
    after, before = (problem.losses(x + s * h * v) for s in (1, -1))
    assert (after - before) / (2 * h) == pytest.approx(np.asarray(gradients) @ v, rel=1e-5)
    assert np.array_equal(problem.losses(x), losses)
    slope = np.asarray(problem.test(x)[1]) @ v  # statistics are held there: they belong to x
    assert np.isfinite(slope).all() and (slope != 0).all()


SIZES = {"resnet18": 11_173_962, "wrn-16-4": 2_748_890, "vgg16": 14_728_266}


@pytest.mark.parametrize(("model", "parameters"), SIZES.items())
def test_the_papers_networks_have_their_sizes(model, parameters):
    from mpisim.problems.torch.models import MODELS

    network = MODELS[model]((3, 32, 32), 10, 1.0)
    assert sum(p.numel() for p in network.parameters()) == parameters


def test_a_minibatch_is_what_numpy_makes_of_the_images():
    """Crops and mirrors from the round's address, and normalisation."""
    problem = loaded(network(CD_ADAM, SIGN, augment=True), 4, "float32")
    seen, batch = [], np.random.default_rng(0).integers(0, 22, (4, 9))
    first = next(iter(problem.flat_model.model.children()))
    first.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].numpy().copy()))
    problem.batch_gradients(problem.initial_point(), batch)
    full = samples.load("generated").features[:90].reshape(90, 3, 8, 4, 8, 4)
    pooled = np.rint(full.mean(axis=(3, 5))).astype(np.uint8)
    mean = pooled.mean(axis=(0, 2, 3))[:, None, None]
    inverse = 1 / pooled.std(axis=(0, 2, 3))[:, None, None]
    uniforms = Draw(Streams(1), "augment", 0, 0, 4).uniforms(27).reshape(4, 9, 3)
    for i in range(4):
        shown = []
        for row, (up, left, mirror) in zip(batch[i], uniforms[i], strict=True):
            padded = np.pad(pooled[22 * i + row], ((0, 0), (4, 4), (4, 4)))
            cut = padded[:, int(9 * up) :, int(9 * left) :][:, :8, :8]
            shown.append(cut[..., ::-1] if mirror < 0.5 else cut)
        wanted = (np.array(shown) - mean.astype("f4")) * inverse.astype("f4")
        inputs = np.concatenate(seen[2 * i : 2 * i + 2])  # parts of 4 and 5 samples
        assert inputs.dtype == wanted.dtype == np.float32
        assert np.allclose(inputs, wanted, rtol=1e-6, atol=1e-7)


def test_batch_norm_averages_like_pytorch():
    """The cumulative average of PyTorch, to the bit, also of a layer that is used twice."""
    from mpisim.problems.torch.network import Statistics

    def network():
        torch.manual_seed(0)
        layer = torch.nn.BatchNorm1d(5, momentum=None)
        last = torch.nn.BatchNorm1d(5, momentum=None)
        return torch.nn.Sequential(layer, torch.nn.Linear(5, 5), layer, last)

    ours, expected = network(), network()
    names = [f"{layer}.running_{what}" for layer in (0, 3) for what in ("mean", "var")]
    statistics = Statistics(ours)
    for _ in range(2):  # the second average forgets the first
        statistics.reset()
        for layer in (expected[0], expected[3]):
            layer.reset_running_stats()
        for rows in (4, 7, 3):
            inputs = torch.randn(rows, 5)
            assert torch.equal(ours(inputs), expected(inputs))
    saved = statistics.flat.clone()
    ours(torch.randn(6, 5))
    assert not torch.equal(ours[0].running_mean, expected[0].running_mean)
    statistics.flat.copy_(saved)
    for name in names:
        assert torch.equal(ours.get_buffer(name), expected.get_buffer(name))


RANK_1 = {"name": "rank-k", "k": 1}
TOP = {"name": "layerwise", "inner": {"name": "topk", "k": 0.1}}
LAYERWISE = [RANK_1, TOP, SIGN | {"layerwise": True}]


@pytest.mark.parametrize("compressor", LAYERWISE, ids=lambda table: table["name"])
def test_layers_are_the_networks_tensors(compressor, tmp_path):
    tables = network({"name": "ef21"}, compressor, 2, workers=2, columns=["layers"])
    problem = loaded(tables, 2)
    tensors = list(problem.flat_model.model.parameters())
    assert problem.layers == tuple(tensor.numel() for tensor in tensors)
    flat = torch.cat([tensor.reshape(-1) for tensor in tensors]).detach()
    assert torch.equal(flat, problem.initial_point())
    run_tables(tables, tmp_path / "log.h5")
    log = columns(tmp_path / "log.h5")
    layers = np.array([log[f"layer_{layer}_bits"] for layer in range(len(tensors))])
    assert np.isnan(layers[:, :2]).all()  # what is sent in round 0 is dense
    bits = np.diff(log["bits_up"])[-1]
    assert layers[:, 2].sum() == bits and (layers[:, 2] > 0).all()
    if compressor["name"] == "rank-k":
        assert bits == 2 * 32 * sum(min(a + b, a * b) for a, b in problem.shapes)
    elif compressor.get("layerwise"):
        assert bits == 2 * (problem.d + 32 * len(tensors))


@needs_mpirun
@pytest.mark.mpi
@pytest.mark.parametrize("device", ["cpu", "accelerator"])
def test_the_same_on_1_and_2_ranks(device):
    if device == "accelerator" and not torch.cuda.is_available():
        pytest.skip("there is no accelerator")
    job = mpirun(2, "-m", "tests.problems.torch.layouts", device)
    assert job.stdout.count("the same") == 2
