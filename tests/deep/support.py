"""Small networks on few generated images, for tests that have PyTorch."""

from __future__ import annotations

import dataclasses

from mpisim.deep import samples


@samples.data_set("few")
def few() -> samples.Samples:
    """90 training and 30 test images."""
    whole = samples.load("generated")
    return dataclasses.replace(
        whole,
        features=whole.features[:90],
        labels=whole.labels[:90],
        test_features=whole.test_features[:30],
        test_labels=whole.test_labels[:30],
    )


def network(method, compressor=None, rounds=6, augment=False, workers=4, **run) -> dict:
    """The tables of a thin ResNet-18 on 8 x 8 pixels."""
    problem = {
        "name": "torch",
        "model": "resnet18",
        "data": "few",
        "width": 0.05,
        "pool": 4,
        "chunk": 8,
        "workers": workers,
        "augment": augment,
        "device": "cpu",
    }
    tables = {"problem": problem, "method": {"stepsize": 0.01} | method}
    tables["run"] = {"rounds": rounds, "dtype": "float32"} | run
    return tables | ({"compressor": compressor} if compressor else {})
