"""The linear autoencoder against its definition, finite differences, and itself in other blocks."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mpisim.problems import PROBLEMS
from mpisim.problems.data.arrange import split_images
from mpisim.problems.data.sample import sample_images
from tests.problems.data.test_files import idx

SIDE = 9
KEYS = [  # code sizes below, above and equal to what a loop keeps in vector registers
    {},
    {"homogeneity": 0.5, "lambda_": 0.3, "code_size": 5},
    {"homogeneity": 1.0, "lambda_": 0.01, "code_size": 16},
    {"homogeneity": 0.4, "mix": "samples", "reduction": "mean", "lambda_": 0.02, "code_size": 21},
]
each = pytest.mark.parametrize("keys", KEYS, ids=str)


def autoencoder(n=7, first=0, count=None, dtype="float64", seed=3, images=61, **keys):
    """On small generated images, of SIDE x SIDE pixels."""
    problem = PROBLEMS["autoencoder"](data="made", images=images, **({"code_size": 3} | keys))
    count = n if count is None else count
    problem.seed = seed
    problem.attach(made(images), parts_of(problem, n, seed), first, count, dtype)
    return problem


def made(images) -> np.ndarray:
    return np.array(sample_images(images, side=SIDE)).reshape(images, -1)


def parts_of(problem, n, seed):
    images = problem.images
    return split_images(images, images, n, problem.homogeneity, problem.mix, seed)


def shards(problem) -> list[np.ndarray]:
    """The images of each of all n workers, pixels in [0, 1]."""
    pixels, parts = made(problem.images) / 255, parts_of(problem, problem.n, problem.seed)
    return [pixels[parts.images[a:b]] for a, b in pairwise(parts.bounds)]


def by_definition(problem, x):
    """f_i(x) and gradients from the formula of Appendix A.5, image by image of each shard."""
    f, e = problem.d_f, problem.d_e
    decoder, encoder = x[: f * e].reshape(f, e), x[f * e :].reshape(e, f)
    rest = decoder @ encoder - np.eye(f)
    weight = 1 if problem.reduction == "sum" else 1 / f
    losses, gradients = [], []
    for a in shards(problem):
        error = a @ rest.T  # rows D E a_j - a_j
        outer = 2 * weight * error.T @ a / len(a) + problem.lambda_ * rest
        penalty = problem.lambda_ / 2 * np.linalg.norm(rest) ** 2
        losses.append(weight * np.linalg.norm(error) ** 2 / len(a) + penalty)
        gradients.append(np.concatenate([(outer @ encoder.T).ravel(), (decoder.T @ outer).ravel()]))
    return np.array(losses), np.array(gradients)


def point(problem, seed=0):
    return 0.1 * np.random.default_rng(seed).standard_normal(problem.d).astype(problem.dtype)


@each
def test_losses_and_gradients_against_the_definition(keys):
    problem = autoencoder(**keys)
    x = point(problem)
    losses, gradients = by_definition(problem, x)
    np.testing.assert_allclose(problem.losses(x), losses, rtol=1e-12)
    np.testing.assert_allclose(problem.gradients(x), gradients, rtol=1e-10, atol=1e-12)
    f, gradient = problem.loss_and_gradient(x)
    assert f == pytest.approx(losses.mean(), rel=1e-12)
    np.testing.assert_allclose(gradient, gradients.mean(axis=0), rtol=1e-10, atol=1e-12)
    x += 0.01  # in place, it is another point
    assert np.array_equal(problem.gradients(x), autoencoder(**keys).gradients(x))


@pytest.mark.parametrize("data", ["sample", "./images"])
def test_the_identity_has_the_digest_of_the_images(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("images").write_bytes(idx(made(9)))
    spec = PROBLEMS["autoencoder"](data=data, code_size=3)
    problem = spec.loaded(5, 0, 5, 1, np.dtype(float))
    (digest,) = spec.digests()
    assert f"sha256:{digest}" in problem.identity


@each
def test_minimum_is_that_of_the_principal_components(keys):
    problem = autoencoder(**keys)
    x, f = problem.minimum()
    weight = 1 if problem.reduction == "sum" else 1 / problem.d_f
    second = weight * np.mean([a.T @ a / len(a) for a in shards(problem)], axis=0)
    eigenvalues = np.linalg.eigvalsh(second) + problem.lambda_ / 2
    assert f == pytest.approx(eigenvalues[: -problem.d_e].sum(), rel=1e-9, abs=1e-9)
    at_start, at_end = (problem.loss_and_gradient(at)[1] for at in (problem.initial_point(), x))
    assert np.linalg.norm(at_end) < 1e-10 * np.linalg.norm(at_start)
