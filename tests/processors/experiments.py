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
from tests.comm.layouts import experiments
from tests.helpers import sampled


def write_dense(path: Path) -> None:
    """LibSVM text of dense rows: 510 x 21, so that nothing divides evenly into lanes."""
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(510, 21)), rng.choice([-1, 1], 510)
    texts = (" ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row)) for row in rows)
    path.write_text("".join(f"{y:+d} {text}\n" for y, text in zip(labels, texts, strict=True)))


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
    """Names and tables of the experiments, on dense rows where rows are read."""
    for tables in experiments():
        problem = tables["problem"]
        if problem["name"] != "autoencoder" and "data" in problem:
            problem = problem | {"data": dense, "workers": min(problem["workers"], 20)}
        yield str(tables), tables | {"problem": problem}
    if extent == "all":
        yield from resumes.experiments()


def digests(dense: str, extent: str) -> dict[str, str]:
    """The digest of each result, by its name; extent: "usual", of which it draws 2, or "all"."""
    actual = {name: _digest(*arrays) for name, arrays in functions()}
    every = chosen(dense, extent)
    for name, tables in sampled(every, 2) if extent == "usual" else every:
        result = mpisim.run(mpisim.Experiment.from_dict(tables))
        columns = {k: v for k, v in result.rows.items() if not k.startswith("time_")}
        columns |= {"x": result.x, "step": np.float64(result.attributes["stepsize"])}
        actual |= {f"{column} of {name}": _digest(values) for column, values in columns.items()}
    return actual


def _digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


if __name__ == "__main__":
    json.dump(digests(*sys.argv[1:]), sys.stdout)
