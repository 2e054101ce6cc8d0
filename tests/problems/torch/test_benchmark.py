"""`python -m benchmarks.network` measures what it says."""

import time

import pytest

pytest.importorskip("torch")


def test_phases_of_a_round(capsys, monkeypatch):
    from benchmarks import network

    sync = []
    monkeypatch.setattr(network, "wait", lambda: sync.append(time.perf_counter()))
    few = {"pool": 4, "samples": 80, "workers": 4, "batch": 5, "rounds": 4}
    words = ["--model=small-cnn", *(f"--{name}={value}" for name, value in few.items())]
    phases, row, what = network.measured(network.arguments(words))
    assert what.startswith("small-cnn, d = 24,346, 4 workers, batch 5, 1 ranks, CPU, PyTorch ")
    names = ["gradient passes", "workers' arithmetic", "compress", "encode", "exchange", "decode"]
    assert list(phases) == [*names, "server", "step", "other"]
    assert all(phases[name] > 0 for name in names if name != "workers' arithmetic") and row > 0
    assert phases["gradient passes"] > phases["encode"]
    assert len(sync) > 4 * len(names)  # before each change of phase
    network.show(phases, row, what)
    shown = dict(line.rsplit(maxsplit=2)[:2] for line in capsys.readouterr().out.splitlines()[2:])
    outside = 1e3 * (sum(phases.values()) - phases["gradient passes"])
    assert float(shown["outside gradient passes"]) == pytest.approx(outside, abs=0.01)
