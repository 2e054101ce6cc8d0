"""Sends the rows of a run to TensorBoard, Weights & Biases or MLflow, as they are written.

A tracker cannot end a run: the first error of its library is reported, and it gets no more rows.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from mpisim.core.errors import library
from mpisim.core.schema import choose
from mpisim.core.terminal import one_line, report
from mpisim.runs.labels import flatten

LIBRARIES = {"tensorboard": "tensorboardX", "wandb": "wandb", "mlflow": "mlflow"}


class Tracker:
    """A run of the tracker ``kind``; `InputError` where its library is missing.

    name : of the run
    attributes : of the run's log; its settings and its step are sent
    """

    def __init__(self, kind: str, name: str, attributes: Mapping[str, Any]):
        self.kind, self.working = kind, True
        tool = library(choose(LIBRARIES, kind, "track"), kind, f"--track {kind}")
        about = flatten(tomllib.loads(attributes["config"])) | {"stepsize": attributes["stepsize"]}
        self._try(lambda: getattr(self, f"_{kind}")(tool, name, about))

    def row(self, row: Mapping[str, Any]) -> None:
        """Send the values of a row, as those of its round."""
        values = {name: float(value) for name, value in row.items() if name != "round"}
        self._try(lambda: self._send(values, int(row["round"])))

    def close(self, status: str) -> None:
        """End the tracker's run, with the status of this one."""
        self._try(lambda: self._end(status))

    def _tensorboard(self, tool: Any, name: str, about: dict[str, Any]) -> None:
        writer = tool.SummaryWriter(f"runs/{name}")
        writer.add_text("settings", "\n".join(f"    {k} = {v}" for k, v in about.items()))
        self._send = lambda values, k: [writer.add_scalar(n, v, k) for n, v in values.items()]
        self._end = lambda status: writer.close()

    def _wandb(self, tool: Any, name: str, about: dict[str, Any]) -> None:
        run = tool.init(project="mpisim", name=name, config=about)
        self._send = lambda values, k: run.log(values, step=k)
        self._end = lambda status: run.finish(exit_code=int(status == "failed"))

    def _mlflow(self, tool: Any, name: str, about: dict[str, Any]) -> None:
        tool.start_run(run_name=name)
        tool.log_params({key: str(value)[:500] for key, value in about.items()})
        self._send = lambda values, k: tool.log_metrics(values, step=k)
        self._end = lambda status: tool.end_run("FAILED" if status == "failed" else "FINISHED")

    def _try(self, act: Callable[[], Any]) -> None:
        try:
            if self.working:
                act()
        except Exception as error:
            self.working = False
            report(f"mpisim: --track {self.kind}: stopped: {one_line(error)}; the run goes on")
