"""Small networks on few generated images, for tests that have PyTorch."""


def network(
    method, compressor=None, rounds=6, augment=False, workers=4, device="cpu", **run
) -> dict:
    """The tables of a thin network with batch norm on 8 x 8 pixels."""
    small = {"samples": 90, "width": 0.05, "pool": 4, "chunk": 8, "device": device}
    problem = {"name": "torch", "model": "small-cnn", "data": "generated", "augment": augment}
    problem |= small | {"workers": workers}
    tables = {"problem": problem, "method": {"stepsize": 0.01} | method}
    tables["run"] = {"rounds": rounds, "dtype": "float32"} | run
    return tables | ({"compressor": compressor} if compressor else {})
