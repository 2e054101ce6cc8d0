"""Experiments that use every kernel whose bits could depend on the processor, and some functions.

`python -m tests.processors.experiments DATA EXTENT` runs them in this process and prints a digest
of each column, of the last x and of the step size as JSON. DATA is a file of `write_dense`.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import mpisim
from mpisim.core.numerics.eigen import eigh
from mpisim.core.numerics.functions import normal_quantiles, power
from mpisim.problems.loss_kernels import sigmoid
from mpisim.problems.quadratic import extreme_eigenvalues
from tests import resumes
from tests.helpers import sampled

RANDK = {"name": "randk", "k": 4}
SAMPLE = {"name": "logistic", "data": "sample", "workers": 4, "l2": 1e-3}
QUADRATIC = {"name": "quadratic", "workers": 6, "dimension": 20, "noise": 0.3}
AUTOENCODER = {
    "name": "autoencoder", "data": "sample", "workers": 6, "images": 60, "code_size": 2,
    "homogeneity": 0.4, "lambda": 0.1,
}  # fmt: skip
SMOOTH = {"name": "smooth", "inner": {"name": "quant-plus"}}
SMOOTH_RANK = {"name": "smooth", "rank": 5, "inner": {"name": "block-quant-plus"}}


def write_dense(path: Path) -> None:
    """LibSVM text of dense rows: 90 x 21, so that nothing divides evenly into lanes."""
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(90, 21)), rng.choice([-1, 1], 90)
    texts = (" ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row)) for row in rows)
    path.write_text("".join(f"{y:+d} {text}\n" for y, text in zip(labels, texts, strict=True)))


def experiments(dense: str) -> Iterator[tuple[dict, dict, dict, dict]]:
    """The tables ``problem``, ``method``, ``compressor`` and ``run``."""
    on = {"data": dense, "workers": 4}
    theory, given = {"stepsize": "theory"}, {"stepsize": 0.05}
    reference, single = {"reference": True}, {"dtype": "float32"}
    every = {"columns": ["adaptive", "pi"]}
    yield SAMPLE, {"name": "diana"} | theory, SMOOTH, reference
    yield SAMPLE | {"scale": "row-max-abs"}, {"name": "diana"} | theory, SMOOTH_RANK, single
    yield {"name": "logistic"} | on, {"name": "vr-diana", "batch": 5} | theory, RANDK, reference
    yield {"name": "nonconvex-loss"} | on, {"name": "marina"} | theory, {"name": "permk"}, every
    yield {"name": "nonconvex-loss"} | on, {"name": "vr-marina", "batch": 7} | theory, RANDK, single
    yield {"name": "least-squares"} | on, {"name": "gd"} | theory, {}, reference
    yield {"name": "logistic-nonconvex-reg"} | on, {"name": "dcgd"} | given, RANDK, {}
    yield {"name": "multinomial-logistic"} | on, {"name": "diana"} | theory, RANDK, reference
    yield QUADRATIC, {"name": "marina"} | theory, {"name": "permk", "groups": 3}, reference | every
    subsets = {"name": "permuted-subsets", "subsets": [[0, 1, 2], [3, 4, 5], [0, 2, 4], [1, 3, 5]]}
    small = QUADRATIC | {"workers": 4, "dimension": 6}
    yield small, {"name": "marina"} | theory, subsets, {}
    rows = [[[1.0, 1.0]], [[1.0, -1.0]]] * 2
    mappings = {"name": "permuted-mappings", "analysis": rows}
    yield small | {"dimension": 2}, {"name": "marina"} | theory, mappings, {}
    for name in ("topk", "toplek"):
        yield QUADRATIC, {"name": "ef21"} | theory, {"name": name, "k": 3}, {}
    hessian = {"hessian": {"name": "symmetric-rank-k", "k": 2}, "stepsize": 1.0}
    yield {"name": "logistic", "l2": 0.1} | on, {"name": "fednl"} | hessian, {}, {}
    yield AUTOENCODER, {"name": "ef21"} | given, {"name": "rank-k", "k": 1}, reference
    layers = {"name": "layerwise", "inner": {"name": "topk", "k": 0.1}}
    yield AUTOENCODER, {"name": "ef21", "stepsize": 1e-4}, layers, {"columns": ["layers"]}
    yield AUTOENCODER, {"name": "vr-marina", "batch": 2} | given, RANDK, single
    tamuna = {"name": "tamuna", "p": 0.3, "participants": 3}
    yield SAMPLE, tamuna | given, {"name": "pattern", "s": 2}, {}
    decay = {"schedule": {"at": [3, 5], "factor": 0.3}, "weight_decay": 0.1}
    for name in ("amsgrad", "cd-adam", "1bit-adam"):
        code = {"name": name, "variant": "code"} | given | decay
        code |= {"warmup": 3} if name == "1bit-adam" else {}
        yield SAMPLE, code, {} if name == "amsgrad" else {"name": "scaled-sign"}, {}
    for compressor in (
        {"name": "qsgd", "s": 3},
        {"name": "qsgd", "s": 3, "norm": "inf"},
        {"name": "natural"},
        {"name": "bernoulli", "p": 0.5},
        {"name": "block-quant", "blocks": 3, "s": 4},
        {"name": "block-quant-plus", "blocks": 3},
        {"name": "rand-tau", "tau": 9.5},
        {"name": "rand-tau-plus"},
        {"name": "randseqk", "k": 3},
        {"name": "block-permutation", "blocks": 2},
        {"name": "drive"},
        {"name": "eden"},
        {"name": "rotated", "inner": {"name": "natural"}},
        {"name": "compose", "outer": {"name": "permk"}, "inner": {"name": "natural"}},
    ):
        yield SAMPLE, {"estimator": "marina", "optimizer": "adam"} | given, compressor, {}


def functions() -> Iterator[tuple[str, list[np.ndarray]]]:
    """Results of so many numbers that a rare difference in the last bit shows."""
    numbers = np.random.Generator(np.random.Philox(key=2)).random(100_000)
    yield "normal quantiles", [normal_quantiles(numbers)]
    yield "sigmoid", [sigmoid(40 * (numbers - 0.5))]
    yield "powers", [np.array([power(v, 77) for v in numbers[:1000].tolist()])]
    yield "extreme eigenvalues", [np.array([extreme_eigenvalues(d) for d in range(1, 2000)])]
    rows = numbers[:2500].reshape(50, 50)
    yield "eigenvectors", list(eigh(rows + rows.T))
    yield "sums", [numbers.sum(), np.add.reduce(numbers.reshape(100, -1), axis=1), numbers.std()]


def chosen(dense: str, extent: str) -> Iterator[tuple[str, dict]]:
    """Names and tables of the experiments."""
    for problem, method, compressor, run in experiments(dense):
        tables = {"problem": problem, "method": method, "run": {"rounds": 6} | run}
        tables |= {"compressor": compressor} if compressor else {}
        yield f"{problem['name']}, {method}, {compressor}, {run}", tables
    if extent == "all":
        yield from resumes.experiments()


def digests(dense: str, extent: str) -> dict[str, str]:
    """The digest of each result, by its name; extent: "usual", of which ten are drawn, or "all"."""
    found = {name: _digest(*arrays) for name, arrays in functions()}
    every = chosen(dense, extent)
    for name, tables in sampled(every, 10) if extent == "usual" else every:
        result = mpisim.run(mpisim.Experiment.from_dict(tables))
        columns = {k: v for k, v in result.rows.items() if not k.startswith("time_")}
        columns |= {"x": result.x, "step": np.float64(result.attributes["stepsize"])}
        found |= {f"{column} of {name}": _digest(values) for column, values in columns.items()}
    return found


def _digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


if __name__ == "__main__":
    json.dump(digests(*sys.argv[1:]), sys.stdout)
