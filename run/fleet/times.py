"""Seconds of a run until |grad f|^2 is 1e-4 of its start, on drawn fleets, and who is ahead."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.claims import Evidence, Verdict, of_seeds
from mpisim.analysis.fleet_rounds import rounds_of, rows_of
from mpisim.analysis.fleet_seconds import seconds as seconds_of
from mpisim.analysis.study import value_of
from mpisim.comm.fleet import Fleet
from mpisim.runs.labels import by_key
from mpisim.runs.log.reader import Log

TARGET = 1e-4
DRAWS = 20
COUNTRIES = ("US", "DE", "BR", "IN", "world")
# Seconds of a sample on the median phone: of 14 features, and of a million weights.
SAMPLE = {"a9a": 1e-5, "million": 0.1}
TITLES = {"a9a": "a9a: 123 weights, 100 clients", "million": "a million weights, 10 clients"}
SOME = {"fedavg": "FedAvg, 30%", "pp-marina": "PP-MARINA, 30%"}  # of the clients take part
METHODS = (
    *("gd", "marina", "diana", "ef21", "ef21-2way", "dasha", "fedavg", "scaffnew"),
    *(*SOME.values(), "shadowheart"),
)


def problem_of(log: Log) -> str:
    """``a9a`` or ``million``."""
    return "million" if log.config["problem"]["name"] == "diagonal" else "a9a"


def method_of(log: Log) -> str:
    """One of `METHODS`."""
    method = str(log.attrs["method"])
    return SOME[method] if "participants" in log.config["method"] else method


def fleet(problem: str, links: str, sigma: float = 0.0, deadline: float | None = None) -> Fleet:
    """Phones with these links."""
    keys = {"sigma": sigma, "deadline": deadline, "seconds": SAMPLE[problem]}
    return Fleet(links, devices="phones", **keys)  # type: ignore[arg-type]


def name(method: str) -> str:
    """For figures."""
    return method if "," in method else labels.method(method)


def row(log: Log) -> int | None:
    """The first row at the target; None without one."""
    values = log.column("grad_norm_sq")
    there = np.flatnonzero(values <= TARGET * values[0])
    return int(there[0]) if there.size else None


@dataclasses.dataclass(frozen=True)
class Times:
    """Of a method on a fleet: {seed of the fleet: seconds}, with the best of the steps tried.

    runs : how many runs there are: that on fleet j is number j modulo ``runs``
    reached : whether all runs reach the target; a run that does not has the seconds that it ran
    edge : whether the best step is the first or the last of several
    left_out : share of the messages that were late
    """

    method: str
    seconds: dict[int, float]
    runs: int
    reached: bool = True
    edge: bool = False
    left_out: float = 0.0

    @property
    def median(self) -> float:
        """Of the seconds."""
        return float(np.median(list(self.seconds.values())))


def times(
    logs: Sequence[Log], problem: str, links: str, sigma: float = 0.0, deadline: float | None = None
) -> list[Times]:
    """Of all methods that have run on the problem, in the order of `METHODS`.

    A run with a clock of its own has its fleet's seconds, and no deadline.
    """
    here = [log for log in logs if problem_of(log) == problem]
    one, methods = fleet(problem, links, sigma, deadline), []
    for method in METHODS:
        its_logs = [log for log in here if method_of(log) == method]
        if method == "shadowheart":
            on_fleet = [
                log
                for log in its_logs
                if log.config["fleet"]["links"] == links
                and (value_of(log, "fleet.sigma") or 0.0) == sigma
            ]
            methods += [simulated(method, on_fleet)] if on_fleet and deadline is None else []
            continue
        tried = [_drawn(method, step, one) for step in by_step(its_logs)]
        if tried:
            best = min(range(len(tried)), key=lambda i: (not tried[i].reached, tried[i].median))
            edge = len(tried) > 1 and best in (0, len(tried) - 1)
            methods.append(dataclasses.replace(tried[best], edge=edge))
    return methods


def _drawn(method: str, logs: Sequence[Log], one: Fleet) -> Times:
    """On `DRAWS` fleets, with one of the runs each."""
    ends = [row(log) for log in logs]
    until = [slice(None if end is None else end + 1) for end in ends]
    runs = [rows_of(rounds_of(log, one), rows) for log, rows in zip(logs, until, strict=True)]
    taken, left_out = {}, []
    for seed in range(1, DRAWS + 1):
        result = seconds_of(runs[seed % len(runs)], one, seed)
        taken[seed] = float(result.seconds[-1])
        left_out.append(result.left_out[-1])
    return Times(method, taken, len(runs), None not in ends, left_out=float(np.mean(left_out)))


def by_step(logs: Sequence[Log]) -> list[list[Log]]:
    """The runs of each step, the smallest first.

    A multiple of the theory step is one step, though each seed's data make another number of it.
    """
    steps = by_key(logs, lambda log: str(value_of(log, "method.stepsize"))).values()
    return sorted(steps, key=lambda logs: float(np.mean([log.attrs["stepsize"] for log in logs])))


def simulated(method: str, logs: Sequence[Log]) -> Times:
    """Of runs on clocks of their own, one for each seed of the fleet."""
    ends = {int(value_of(log, "fleet.seed") or 1): (log, row(log)) for log in logs}
    seconds = {
        seed: float(log.columns["simulated_seconds"][-1 if end is None else end])
        for seed, (log, end) in ends.items()
    }
    return Times(method, seconds, max(ends), all(end is not None for _, end in ends.values()))


def ahead(where: str, less: Times, more: Times) -> Evidence:
    """Whether ``less`` takes less time than ``more`` on the fleets that both have.

    A ratio for each run: the geometric mean over its fleets, as these share what the run drew. A
    side that does not reach the target needs more than its seconds: it may be behind, not ahead.
    """
    both = sorted(less.seconds.keys() & more.seconds.keys())
    if not both:
        return Evidence(where, "no fleet has both", Verdict.UNDECIDED)
    text = " and ".join(f"{'' if t.reached else '> '}{t.median:.3g} s" for t in (less, more))
    runs = by_key(both, lambda j: j % min(less.runs, more.runs))
    logs = [[np.log(more.seconds[j] / less.seconds[j]) for j in fleets] for fleets in runs.values()]
    evidence = of_seeds(where, [float(np.exp(np.mean(one))) for one in logs], "fewer", text=text)
    order = {Verdict.HOLDS: ([less], [more]), Verdict.FAILS: ([more], [less])}
    faster, slower = order.get(evidence.verdict, ([less, more], [less, more]))
    if not all(one.reached for one in faster):
        return Evidence(where, f"{evidence.measured}, not all get there", Verdict.UNDECIDED)
    if any(one.edge for one in slower):  # a better step may change it
        return Evidence(where, f"{evidence.measured}, at an edge of the steps", Verdict.UNDECIDED)
    return evidence


def rivals(first: Times, others: Collection[Times]) -> list[Times]:
    """Of others, those that ``first`` is not decidedly ahead of."""
    return [one for one in others if ahead("", first, one).verdict is not Verdict.HOLDS]
