"""Problems of a user's own: any module, any loss, tensors, Datasets and other libraries' data."""

import re
import sys
import types

import numpy as np
import pytest

import mpisim
from mpisim.core.errors import InputError
from mpisim.core.schema import build
from mpisim.problems import PROBLEMS
from mpisim.problems.torch import samples, samples_of
from mpisim.runs.experiment import parse
from mpisim.testing import problem_checks
from mpisim.testing.new import create
from tests.comm.jobs import ROOT
from tests.helpers import run_tables

torch = pytest.importorskip("torch")

PLUGIN = """
import mpisim
import torch
from mpisim.problems.torch import TorchProblem, samples_of

@mpisim.problem("regression")
class Regression(TorchProblem):
    def make_module(self, shape):
        return torch.nn.Linear(*shape, 1, bias=False)
    def make_samples(self):
        random = torch.Generator().manual_seed(0)
        a = torch.randn(70, 5, generator=random)
        y = a @ torch.arange(5.0)
        return samples_of((a[:60], y[:60]), (a[60:], y[60:]))
    def loss(self, outputs, targets):
        return torch.nn.functional.mse_loss(outputs[:, 0], targets, reduction=REDUCTION)
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """plugin(name, reduction, ...): the path of the plugin, which is forgotten after the test.

    It has the second of each of the pairs ``others`` in place of the first.
    """

    def written(name, reduction, *others):
        monkeypatch.setattr("mpisim.runs.plugins._loaded", {})
        monkeypatch.delitem(sys.modules, name, raising=False)
        path = tmp_path / f"{name}.py"
        text = PLUGIN.replace("REDUCTION", repr(reduction))
        for before, after in others:
            assert before in text
            text = text.replace(before, after)
        path.write_text(text)
        return str(path)

    return written


def tables(path, **method):
    keys = {"name": "regression", "workers": 4, "device": "cpu"}
    method = {"stepsize": 0.1} | (method or {"name": "gd"})
    return {"plugin": path, "problem": keys, "method": method, "run": {"rounds": 9}}


def load(path):
    return parse(tables(path)).problem.loaded(4, 0, 4, 1, np.dtype("float64"))


def test_its_gradients_are_those_of_least_squares(plugin):
    problem = load(plugin("exact", "sum"))
    data = problem.make_samples()
    a, y = (np.float64(v).reshape(4, 15, -1) for v in (data.features, data.labels))
    x = np.random.default_rng(0).normal(size=5)
    errors = [rows @ x - targets[:, 0] for rows, targets in zip(a, y, strict=True)]
    losses, gradients = problem.losses_and_gradients(x)
    assert losses == pytest.approx([(e**2).mean() for e in errors], rel=1e-12)
    wanted = [2 * rows.T @ e / 15 for rows, e in zip(a, errors, strict=True)]
    assert np.allclose(gradients, wanted, rtol=1e-12)
    shares = problem.test(x)[0].sum(axis=0)
    test = (data.test_features.astype(float) @ x - data.test_labels) ** 2
    assert shares[1] == pytest.approx(test.mean(), rel=1e-12)
    assert np.isnan(shares[[0, 2]]).all()  # nothing is classified
    classes = torch.tensor([0, 1, 1])
    assert problem.correct(torch.zeros(3, 1), classes).isnan()  # nor by the sign of one output
    assert problem.correct(torch.eye(3)[classes], classes) == 3


LINEAR = "torch.nn.Linear(*shape, 1, bias=False)"
CLASSES = [("y = a @ torch.arange(5.0)", "y = torch.arange(70) % 3 + 1"), ("def loss", "def other")]
SHAPES = r"cannot take features of shape \(5,\) and targets of .*: mat1"
UNFIT = [  # the reduction of the loss, the module, other changes of the plugin, and the line
    ("mean", LINEAR, [], "loss must be the sum over its samples"),
    ("none", LINEAR, [], "loss must be one number for all"),
    ("sum", "torch.nn.LazyLinear(1)", [], "no lazy layers"),
    ("sum", "torch.nn.Linear(4, 1)", [], SHAPES),
    ("sum", "torch.nn.LSTM(*shape, 1)", [], "the module must return a tensor with a row"),
    ("sum", "torch.nn.Linear(*shape, 3)", CLASSES, "labels go from 1 to 3; allowed: from 0 to 2"),
    ("sum", "torch.nn.Flatten(0)", [], "one with parameters"),
    ("sum", f"{LINEAR}.requires_grad_(False)", [], "one with parameters that require gradients"),
]


@pytest.mark.parametrize(("reduction", "module", "others", "line"), UNFIT)
def test_a_module_or_a_loss_that_does_not_fit_is_one_line(plugin, reduction, module, others, line):
    path = plugin("unfit", reduction, (LINEAR, module), *others)
    with pytest.raises(InputError, match=f"^problem 'regression': .*{line}") as error:
        load(path)
    assert "\n" not in str(error.value)


def test_frozen_parameters_stay_as_they_are(plugin):
    layers = "torch.nn.Linear(*shape, 3).requires_grad_(False), torch.nn.Tanh()"
    module = f"torch.nn.Sequential({layers}, torch.nn.Linear(3, 1))"
    problem = load(plugin("frozen", "sum", (LINEAR, module)))
    first, _, last = problem.flat_model.model
    assert problem.d == 4 and problem.shapes == ((1, 3), (1, 1))
    before = [p.clone() for p in first.parameters()]
    x = problem.initial_point()
    assert torch.equal(x, torch.cat([last.weight.detach()[0], last.bias.detach()]))
    _, gradients = problem.losses_and_gradients(x + 1)
    assert gradients.shape == (4, 4) and (gradients != 0).all()
    assert torch.equal(last.bias.detach(), x[3:] + 1)
    assert all(torch.equal(p, old) for p, old in zip(first.parameters(), before, strict=True))


def test_a_step_in_place_is_refused(plugin):
    @mpisim.optimizer("mine")
    class Mine(mpisim.Optimizer):
        def step(self, x, g, gamma):
            return x.sub_(gamma * g)

    method = tables(plugin("stepping", "sum"), estimator="naive", optimizer="mine")
    with pytest.raises(InputError, match=r"\.Mine: step changes x or g in place"):
        run_tables(method | {"compressor": {"name": "identity"}})


def test_the_template_of_a_metric_sees_tensors(plugin, tmp_path):
    problem, (path, _) = plugin("measured", "sum"), create("metric", "travelled", tmp_path)
    both = {"plugin": [problem, str(path)], "run": {"rounds": 9, "columns": ["travelled"]}}
    end = run_tables(tables(problem) | both, keep=True)
    distances, start = end.columns["travelled"], load(problem).initial_point()
    assert distances[0] == 0 and (np.diff(distances) >= 0).all()
    assert distances[-1] >= np.linalg.norm(end.x - start.numpy()) * (1 - 1e-12) > 0


def test_the_examples_of_the_documents(tmp_path):
    [page] = (ROOT / "docs").rglob("deep-learning.md")
    examples = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    (tmp_path / "documented.py").write_text("\n".join(examples))
    method = {"name": "cd-adam", "stepsize": 0.01, "batch": 9}
    parts = {"method": method, "compressor": {"name": "scaled-sign"}, "run": {"rounds": 60}}
    parts["plugin"] = str(tmp_path / "documented.py")
    mlp = {"name": "torch", "model": "mlp", "data": "mine", "width": 0.1}
    for problem in ({"name": "sine", "hidden": 9}, mlp):
        keys = problem | {"workers": 4, "device": "cpu"}
        losses = run_tables(parts | {"problem": keys}, keep=True).columns["loss"]
        assert losses[-1] < 0.8 * losses[0]
    # batch norm couples a batch's samples, which is no mistake
    keys = {"data": "generated", "samples": 60, "width": 0.1, "pool": 4, "device": "cpu"}
    for name, table in (("sine", {"samples": 40}), ("torch", keys | {"model": "small-cnn"})):
        outcomes = [one.outcome(name) for one in problem_checks(build(PROBLEMS[name], table, ""))]
        assert not [str(one) for one in outcomes if one.failed]
        assert outcomes[2].status == ("ok" if name == "sine" else "not checked")


def pictures(count, mode="RGB"):
    """(image, label) as torchvision has them, and the images as arrays (count, c, 5, 6)."""
    image = pytest.importorskip("PIL.Image")
    channels = {"RGB": 3, "L": 1, "RGBA": 4}[mode]
    pixels = np.random.default_rng(0).integers(0, 256, (count, channels, 5, 6)).astype(np.uint8)
    shown = pixels.transpose(0, 2, 3, 1) if channels > 1 else pixels[:, 0]
    pairs = [(image.fromarray(one, mode), i % 3) for i, one in enumerate(shown)]
    return pairs, pixels


def test_samples_of_tensors_and_datasets():
    a, tokens = torch.randn(7, 2, 3, requires_grad=True), torch.arange(14).reshape(7, 2)
    both = torch.utils.data.TensorDataset(a, tokens)
    for loaded in (samples_of((a, tokens), (a[:2], tokens[:2])), samples_of(both, list(both))):
        assert np.array_equal(loaded.features, a.detach()) and np.array_equal(loaded.labels, tokens)
        assert loaded.classes == 0 and loaded.labels.dtype == np.int64
    for mode in ("RGB", "L"):
        pairs, pixels = pictures(7, mode)
        loaded = samples_of(pairs, pairs[:4])
        assert np.array_equal(loaded.features, pixels) and loaded.features.dtype == np.uint8
        assert loaded.labels.tolist() == [0, 1, 2, 0, 1, 2, 0] and loaded.classes == 3
        assert np.array_equal(loaded.test_features, pixels[:4])
    assert samples_of(pictures(3, "RGBA")[0], pairs).features.shape[1] == 3
    three = "3 parts; allowed: features and targets"
    for wrong, line in (
        ([(np.zeros(2), 0), (np.zeros(3), 1)], "cannot be one array"),
        (torch.utils.data.TensorDataset(a, a, tokens), three),
        ([(a, a, 1)], three),
        ((a, tokens[:6]), "7 features, but 6 targets"),
    ):
        with pytest.raises(InputError, match=f"samples: {line}"):
            samples_of(wrong, both)


@pytest.fixture
def forget():
    samples.load.cache_clear()
    yield
    samples.load.cache_clear()


FOLDER = types.ModuleType("datasets")  # what Python makes of a folder of this name
FOLDER.__file__ = None
MISSING = [("torchvision", None), ("datasets", None), ("datasets", FOLDER)]


@pytest.mark.parametrize(("library", "module"), MISSING)
def test_a_library_that_is_missing_is_one_line(library, module, monkeypatch, forget):
    monkeypatch.setitem(sys.modules, library, module)
    with pytest.raises(InputError, match=f"needs {library}: pip install {library}$"):
        samples.load(f"{library}:MNIST")
    with pytest.raises(InputError, match="before ':': unknown name 'nowhere'"):
        samples.load("nowhere:MNIST")


def test_data_of_hugging_face(monkeypatch, forget):
    pairs, pixels = pictures(8)

    class Rows(list):
        column_names = ("id", "img", "label")

    def load_dataset(name, split):
        if name != "someone/photos":
            raise ValueError(f"no such set\n{name}")
        rows = [{"id": i, "img": x, "label": y} for i, (x, y) in enumerate(pairs)]
        return Rows(rows[: {"train": 8, "test": 3}[split]])

    fake = types.ModuleType("datasets")
    fake.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", fake)
    loaded = samples.load("datasets:someone/photos")
    assert np.array_equal(loaded.features, pixels) and len(loaded.test_labels) == 3
    with pytest.raises(InputError, match="datasets:other cannot be loaded: no such set other"):
        samples.load("datasets:other")
    monkeypatch.setattr(Rows, "column_names", ("id", "text"))
    with pytest.raises(InputError, match=r"none of the columns image, img, .* but id, text"):
        samples.load.__wrapped__("datasets:someone/photos")
