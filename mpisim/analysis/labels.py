"""Names of methods, compressors and parameters as figures and tables show them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from mpisim.methods.names import METHODS

COMPRESSORS = {
    "identity": "no compression",
    "randk": "RandK",
    "topk": "TopK",
    "permk": "PermK",
    "rankk": "RankK",
    "rank-k": "RankK",
    "qsgd": "QSGD",
    "natural": "natural compression",
    "bernoulli": "Bernoulli",
    "scaled-sign": "scaled sign",
    "block-permutation": "block permutation",
    "block-quant": "block quantization",
    "quant-plus": "quantization+",
    "block-quant-plus": "block quantization+",
    "rand-tau": "rand-τ",
    "rand-tau-plus": "rand-τ+",
}
PARAMETERS = {
    "k": "K",
    "stepsize": "γ",
    "alpha": "α",
    "beta": "β",
    "beta1": "β₁",
    "beta2": "β₂",
    "lambda": "λ",
    "tau": "τ",
    "nu": "ν",
    "omega": "ω",
    "workers": "n",
    "momentum": "β",
}
# Parameters that are shown with the name of a compressor.
ESSENTIAL = ("k", "s", "p", "tau", "beta", "blocks", "groups")
PROBLEMS = {
    "logistic": "logistic loss",
    "nonconvex-loss": "non-convex loss",
    "logistic-nonconvex-reg": "logistic loss, non-convex regulariser",
    "least-squares": "least squares",
    "autoencoder": "linear autoencoder",
}
NETWORKS = {"resnet18": "ResNet-18", "vgg16": "VGG-16", "wrn-16-4": "WideResNet-16-4"}
IMAGES = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "cifar10-part": "part of CIFAR-10",
    "generated": "generated images",
}


def method(name: str) -> str:
    """The name of a method in its paper."""
    return METHODS[name].label if name in METHODS else name


def compressor(table: dict[str, Any], also: set[str] | frozenset[str] = frozenset()) -> str:
    """A compressor with its essential parameters and those in ``also``: ``RandK (K = 10)``."""
    name = str(table.get("name", ""))
    inner = [value for value in table.values() if isinstance(value, dict)]
    lists = [value for value in table.values() if isinstance(value, list)]
    inner += [item for value in lists for item in value if isinstance(item, dict)]
    parameters = [
        parameter(key, value)
        for key, value in table.items()
        if (key in ESSENTIAL or key in also) and not isinstance(value, dict | list)
    ]
    text = COMPRESSORS.get(name, name) + "".join(f" of {compressor(one, also)}" for one in inner)
    return text + (f" ({', '.join(parameters)})" if parameters else "")


def parameter(key: str, value: Any) -> str:
    """A parameter and its value: ``K = 10``, ``γ = 4 × theory``, ``bias``."""
    symbol = PARAMETERS.get(key, key.replace("_", " "))
    if isinstance(value, dict) and "theory" in value:
        under = f" ({value['condition']})" if "condition" in value else ""
        return f"{symbol} = {number(value['theory'])} × theory{under}"
    if value is True or value is False:
        return symbol if value else f"no {symbol}"
    return f"{symbol} = {number(value)}"


def number(value: Any) -> str:
    """A value, floats with four digits."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.4g}"
    return str(value)


def problem(table: dict[str, Any]) -> str:
    """A problem and its data: ``non-convex loss on mushrooms``."""
    name = str(table.get("name", ""))
    text = PROBLEMS.get(name, name)
    return f"{text} on {Path(str(table['data'])).name}" if table.get("data") else text


def training(config: dict[str, Any], n: int) -> str:
    """What n workers train: ``ResNet-18 on part of CIFAR-10 (1000 images), n = 8, batch 32``."""
    table = config["problem"]
    width, pool = float(table["width"]), int(table["pool"])
    name = NETWORKS.get(table["model"], str(table["model"]))
    data = IMAGES.get(table["data"], str(table["data"]))
    less = [] if width == 1 else [f"{width:g} of its channels"]
    less += [] if pool == 1 else [f"images averaged over {pool} x {pool} pixels"]
    less += [f"{table['samples']} images"] if table["samples"] else []
    small = f" ({', '.join(less)})" if less else ""
    batch = config["method"].get("batch")
    return f"{name} on {data}{small}, n = {n}, batch {batch}"
