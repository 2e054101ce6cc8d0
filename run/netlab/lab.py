"""What runs in the lab: the cases of fleet.py."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from mpisim.comm.links import parse

from .fleet import CASES, METHODS, logs_of, size

sys.path.append(str(Path(__file__).resolve().parents[2]))  # tools/ is no part of the package


def measure(folder: Path, cases: int) -> None:
    """FOLDER/01-links.h5, 01-unlimited.h5, ...: the logs of the first ``cases``."""
    from tools.netlab.check import Experiment, run
    from tools.netlab.job import stoppable
    from tools.netlab.lab import Lab

    folder.mkdir(parents=True, exist_ok=True)
    with stoppable():
        for number, case in enumerate(CASES[:cases], 1):
            print(f"{number:2} of {cases}: {case.name}", flush=True)
            links, (d, rounds) = [parse(text) for text in case.links], size(case)
            problem = f"problem={{ name = 'quadratic', dimension = {d}, workers = {len(links)} }}"
            one = Experiment(case.name, rounds, (problem, *METHODS[case.method]))
            on_links, unlimited = logs_of(folder, number)
            with Lab(len(links) + 1, links=links, losses=[case.loss] * len(links)) as lab:
                shutil.copyfile(run(lab, one, rounds)[0].path, on_links)
            with Lab(len(links) + 1) as lab:  # all rows: the model needs the bits of each round
                shutil.copyfile(run(lab, one, rounds, log_every=1)[0].path, unlimited)
