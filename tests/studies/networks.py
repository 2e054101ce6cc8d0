"""Logs of networks, written by hand, for the tests of their figures."""

import dataclasses

import numpy as np

from mpisim.analysis.study import find
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import Log

D, N, ROWS = 1000, 8, 11
MESSAGES = {"amsgrad": 32 * D, "cd-adam": 32 + D, "1bit-adam": 32 + D, "ef21-2way": 60 * 16}


def figure(name):
    """The figure called STUDY-NAME."""
    return find(name)[1]


def log_of(method, rate, k=0.016, **more):
    """A log whose loss falls by e^-rate in each of 10 rounds, all rounds logged."""
    rounds = np.arange(ROWS)
    warm = 2 if method == "1bit-adam" else 0
    bits = np.cumsum([0, *np.where(rounds[:-1] < warm, 32 * D, MESSAGES.get(method, 100))])
    loss = np.exp(-rate * rounds)
    compressor = {"identity": {}, "topk": {"k": k}, "randk": {"k": k}, "scaled-sign": {}}
    name = {"amsgrad": "identity", "ef21-2way": "topk"}
    chosen = more.pop("compressor", name.get(method, "scaled-sign"))
    table = {
        "problem": {"name": "torch", "workers": N},
        "method": {"name": method, "stepsize": 0.1, "batch": 16},
        "compressor": {"name": chosen} | compressor[chosen],
        "run": {"rounds": ROWS - 1},
    }
    columns = {
        "round": rounds,
        "loss": loss,
        "grad_norm_sq": loss**2,
        "bits_up": N * bits,
        "bits_down": N * bits,
        "oracle_calls": rounds * N * 16,
        "test_loss": 1.1 * loss,
        "test_grad_norm_sq": loss**2,
        "train_accuracy": 1 - 0.9 * loss,
        "test_accuracy": 1 - 0.9 * loss,
        "time_compute": 0.5 * rounds,
        "time_compress": 0.1 * rounds if method in ("cd-adam", "ef21-2way") else 0.0 * rounds,
        "pi_up": np.append(np.nan, np.full(ROWS - 1, 0.65)),
        "pi_up_max": np.append(np.nan, np.full(ROWS - 1, 0.7)),
        "pi_down": np.append(np.nan, np.full(ROWS - 1, 0.35)),
        "pi_code": np.append(np.nan, np.full(ROWS - 1, 0.4)),
    }
    attrs = {"method": method, "workers": N, "dimension": D, "method_warmup": 2}
    attrs |= {"seed": 1, "stepsize": 0.1, "status": "done"}
    workers, config = {"rows": np.full(N, 250)}, parse(table).table
    return Log(f"{method}-{rate}", attrs, columns, workers, {}, {}, config)


def four_logs():
    """A run of each method with one seed."""
    rates = {"cd-adam": 0.10, "amsgrad": 0.10, "1bit-adam": 0.11, "ef21-2way": 0.05}
    return [log_of(method, rate) for method, rate in rates.items()]


def seeded(log, seed):
    return dataclasses.replace(log, attrs=log.attrs | {"seed": seed})


def with_columns(log, **columns):
    return dataclasses.replace(log, columns=log.columns | columns)
