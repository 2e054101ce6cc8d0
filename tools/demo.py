"""The demo: MARINA, DIANA, EF21 and GD, 6 workers under mpirun; four logs, a picture, a table.

On mushrooms, found through MPISIM_DATA or downloaded; when no download starts within 5 seconds, on
the sample that comes with mpisim. Started by `make demo`.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from mpisim.analysis.api import load, plot
from mpisim.analysis.cost_table import table
from mpisim.analysis.targets import Target
from mpisim.core.errors import InputError
from mpisim.problems.data.fetch import fetch
from mpisim.problems.data.find import find

DATA, TARGET = "mushrooms", Target("grad_norm_sq", 1e-2)
RUNS = {
    "marina": ["compressor={ name = 'randk', k = 10 }"],
    "diana": ["compressor={ name = 'randk', k = 10 }"],
    "ef21": ["compressor={ name = 'topk', k = 10 }"],
    "gd": [],
}


def data_set() -> str:
    """mushrooms if it is at hand or can be downloaded, else the sample; prints which."""
    with suppress(InputError):
        print(f"data: {DATA}, {find(DATA)}")
        return DATA
    try:
        fetch(DATA, start_timeout=5.0)
        print(f"data: {DATA}, downloaded")
        return DATA
    except InputError as error:
        print(f"data: the sample, because {DATA} is not at hand and no download started ({error})")
        return "sample"


def run(name: str, settings: list[str], data: str) -> Path:
    """One run under mpirun; its log."""
    log = Path("logs/demo") / f"{name}.h5"
    settings = [f"method.name={name}", f"problem.data={data}", *settings]
    arguments = [word for setting in settings for word in ("--set", setting)]
    command = ["mpirun", "-n", "6", sys.executable, "-m", "mpisim", "run", "tools/demo.toml"]
    shown = " ".join(map(repr, arguments))
    print(f"\n{name}: mpirun -n 6 python -m mpisim run tools/demo.toml {shown}", flush=True)
    subprocess.run([*command, *arguments, "--out", str(log), "--force"], check=True)
    return log


def main() -> None:
    """Run the four, draw them and print the table."""
    data = data_set()
    logs = [run(name, settings, data) for name, settings in RUNS.items()]
    picture = Path("figures/demo.png")
    plot(logs, "bits_up", "grad_norm_sq", picture, title=f"{data}, 6 workers, theory step sizes")
    print(f"\n{table(load(logs).logs, [TARGET])}\n\nlogs: logs/demo/   picture: {picture}")


if __name__ == "__main__":
    main()
