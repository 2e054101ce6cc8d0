"""FedNL in mpisim and in u-FedNL, a C++ program: CPU seconds of whole processes, with their start.

Both run FedNL with TopK, K = 8 d, on logistic regression with a bias, l2 = 1e-3, shuffled rows,
n = 142, option B, alpha = 1. mpisim sends the first Hessians and starts from them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sklearn.datasets import dump_svmlight_file

from benchmarks.common import result
from benchmarks.peers import experiments
from benchmarks.start import cpu_seconds
from mpisim.problems.data.find import available

ROUNDS = {"phishing": 200, "a9a": 50, "w8a": 20}
CLIENTS, L2, MULTIPLE = 142, 1e-3, 8
OPTIONS = (
    "--algorithm fednl1 --fednl-option-b --compressor topk --theoretical_alpha"
    " --use_theoretical_alpha_option_2 --train --add_intercept --reshuffle_train --silent"
    " --workers 1 --server_grad_workers 1 --server_hessian_workers 1"
)


def commands(program: str, data: str, folder: Path) -> tuple[list[str], list[str]]:
    """mpisim's and the program's, for a data set, whose rows are written into the folder."""
    a, y = experiments.rows({"data": data, "workers": 1})
    file, log = folder / data, folder / f"{data}.h5"
    dump_svmlight_file(a, y, str(file), zero_based=False)
    d, rounds = a.shape[1] + 1, ROUNDS[data]
    tables = (
        f"problem={{ name = 'logistic', data = '{data}', workers = {CLIENTS}, split = 'shuffled',"
        f" bias = true, l2 = {L2} }}",
        "method={ name = 'fednl', option = 'B', stepsize = 1.0, alpha = 1.0,"
        f" hessian = {{ name = 'topk', k = {MULTIPLE * d} }} }}",
        f"run={{ rounds = {rounds}, wire = 'float64', log_every = {max(1, rounds // 100)} }}",
    )
    settings = [word for table in tables for word in ("--set", table)]
    mine = [sys.executable, "-m", "mpisim", "run", *settings, "--force", "--out", str(log)]
    numbers = {
        "--train_dataset": file,
        "--clients": CLIENTS,
        "--lambda": L2,
        "--k_compressor_as_d_mult": MULTIPLE,
        "--rounds": rounds,
        "--out": folder / f"{data}.bin",
    }
    other = [program, *OPTIONS.split()]
    return mine, other + [str(word) for pair in numbers.items() for word in pair]


def turns(program: str, folder: Path, count: int) -> list[dict]:
    """The rows of ``count`` turns."""
    rows = []
    for data in filter(available, ROUNDS):
        mine, other = commands(program, data, folder)
        cpu_seconds(mine)  # compiles
        what = f"FedNL, {data}, n = {CLIENTS}, {ROUNDS[data]} rounds: faster than u-FedNL, CPU"
        for _ in range(count):
            rows.append(result(what, cpu_seconds(mine), cpu_seconds(other), "s", inverse=True))
    return rows
