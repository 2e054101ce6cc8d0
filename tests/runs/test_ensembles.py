"""Ensembles: each run's log is that of the run alone, whatever the others do."""

import itertools
import signal
from contextlib import ExitStack, suppress

import numpy as np
import pytest

from mpisim.comm.communicators import OneProcess
from mpisim.compressors.base import COMPRESSORS
from mpisim.core.errors import Diverged, OutputError
from mpisim.methods.estimators.base import ESTIMATORS
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems.base import PROBLEMS
from mpisim.runs import checkpoint
from mpisim.runs.ensemble import key_of, run_together
from mpisim.runs.experiment import parse
from mpisim.runs.log import writer
from mpisim.runs.record import Output
from mpisim.runs.setup import ProblemCache
from mpisim.runs.stop import StopSignals
from mpisim.runs.sweep.points import Claims, Point, read_summary
from mpisim.runs.sweep.runner import Queue
from tests.helpers import attributes, columns, run_tables, set_up, some_of, table
from tests.problems.support import FORMS, attach, make_rows
from tests.resumes import differences
from tests.runs.support import at_round
from tests.runs.sweep.support import write

QUADRATIC = {"name": "quadratic", "workers": 6, "dimension": 20, "noise": 0.3}
TASKS = {  # name: the tables that replace those of `table`
    "logistic": {"name": "logistic", "l2": 0.01},
    "nonconvex-loss": {"name": "nonconvex-loss", "bias": True},
    "least-squares": {"name": "least-squares"},
    "quadratic": QUADRATIC,
}
METHODS = {"marina": {"p": 0.3}, "diana": {"alpha": 0.2}, "naive": {}, "ef21": {}}
CODES = {"identity": {}, "randk": {"k": 4}, "permk": {"groups": 2}, "qsgd": {"s": 3}}
CODES |= {"natural": {}, "topk": {"k": 3}}
STEPS = [0.01, 0.02, 0.05]


def tables(method, compressor, problem=None, step=0.1, rounds=24, keys=None, **run):
    """An experiment; ``keys``: more of its method."""
    of_method = {"estimator": method, "optimizer": "gd", "stepsize": step} | METHODS[method]
    of_method |= keys or {}
    code = {"name": compressor} | CODES[compressor]
    made = table(of_method, code, problem=problem, rounds=rounds, log_every=4, **run)
    return made | ({"problem": problem} if problem == QUADRATIC else {})


def together(experiments, folder, watch=None):
    """Run them as one ensemble; their ends and logs."""
    cache = ProblemCache()
    setups = [set_up(one, cache) for one in experiments]
    assert len({key_of(setup.experiment) for setup in setups} - {""}) == 1
    logs = [folder / f"together-{i}.h5" for i in range(len(setups))]
    outputs = [Output(log, quiet=True, ensemble=len(logs)) for log in logs]
    with StopSignals() as signals:
        signals.watch = watch or signals.watch
        return run_together(setups, outputs, signals), logs


def require_same(experiments, folder, logs=None):
    """Except for the clocks, each log is its run's alone; ``logs``: of those that ran before."""
    logs = logs or together(experiments, folder)[1]
    for i, (one, log) in enumerate(zip(experiments, logs, strict=True)):
        alone = folder / f"alone-{i}.h5"
        with suppress(Diverged):
            run_tables(one, alone, OneProcess(), quiet=True)
        assert differences(alone, log) == []


PAIRS = [*itertools.product(TASKS, METHODS, CODES)]
PAIRS = [pair for pair in PAIRS if (pair[0], pair[2]) != ("quadratic", "topk")]


@pytest.mark.drawn(10)
@pytest.mark.parametrize(("problem", "method", "compressor"), PAIRS)
def test_logs_are_those_of_the_runs_alone(problem, method, compressor, tmp_path):
    require_same([tables(method, compressor, TASKS[problem], step) for step in STEPS], tmp_path)


@pytest.mark.parametrize("keys", [{"split": "homogeneous"}, {"workers": 1}])
def test_workers_with_the_same_rows(keys, tmp_path):
    problem = TASKS["logistic"] | keys
    require_same([tables("diana", "randk", problem, step) for step in STEPS], tmp_path)


@some_of(6, compressor=CODES, method=[name for name in METHODS if name != "marina"])
def test_seeds_of_methods_without_coins(method, compressor, tmp_path):
    """With minibatches where the method has some; the large step leaves."""
    runs = [(0.05, 1), (0.05, 2), (1e60, 2), (0.02, 1), (0.02, 3)]
    code, keys = (compressor, TASKS["logistic"]), {} if method == "diana" else {"batch": 5}
    require_same([tables(method, *code, s, keys=keys, seed=seed) for s, seed in runs], tmp_path)


def test_more_runs_than_lanes(tmp_path):
    steps = (0.01 * i for i in range(1, 12))
    require_same([tables("marina", "permk", TASKS["logistic"], one) for one in steps], tmp_path)


def test_momentum_schedules_and_accuracies(tmp_path):
    """What a run may have beside its method, all at once."""
    stop = {"suboptimality": 0.05, "divergence": 1e3}
    more = {"optimizer": "heavy-ball", "schedule": {"at": [0.25]}, "weight_decay": 1e-3}
    how = {"keys": more, "reference": True, "stop": stop}
    steps = (0.1, 0.3, 1.0, 1e9)
    require_same([tables("diana", "qsgd", TASKS["logistic"], s, **how) for s in steps], tmp_path)


# {problem: steps}: the second diverges, and the last reaches the accuracy
ENDS = {"logistic": ([0.01, 1e60, 0.012, 1.0], 0.05), "quadratic": ([1e-4, 1e9, 2e-4, 0.5], 0.05)}


@some_of(3, problem=ENDS, method=METHODS)
def test_runs_that_end_leave(method, problem, tmp_path):
    steps, accuracy = ENDS[problem]
    how = {"rounds": 60, "stop": {"grad_norm_sq": accuracy}}
    experiments = [tables(method, "natural", TASKS[problem], step, **how) for step in steps]
    ends, logs = together(experiments, tmp_path)
    assert [end.status for end in ends] == ["done", "diverged", "done", "done"]
    rounds = [end.row["round"] for end in ends]
    assert rounds[::2] == [60, 60] and all(0 < k < 60 for k in rounds[1::2])
    require_same(experiments, tmp_path, logs)


@some_of(3, problem=ENDS, method=METHODS)
def test_an_interrupted_run_goes_on_alone(method, problem, tmp_path):
    """From a checkpoint of its own; another one has left before."""
    steps = [0.01, 1e300, 0.02]
    experiments = [tables(method, "qsgd", TASKS[problem], step, rounds=40) for step in steps]
    looks = itertools.count()
    ends, logs = together(experiments, tmp_path, lambda: signal.SIGINT * (next(looks) > 14))
    assert [end.status for end in ends] == ["interrupted", "diverged", "interrupted"]
    assert all(4 < end.row["round"] < 40 for end in ends[::2])
    for one, log in zip(experiments[::2], logs[::2], strict=True):
        run_tables(one, log, OneProcess(), quiet=True, resume=True)
        assert attributes(log)["ensemble"] == 3 and attributes(log)["status"] == "done"
    require_same(experiments, tmp_path, logs)


def test_if_one_cannot_be_written_the_others_say_that_they_failed(tmp_path, monkeypatch):
    at_round(monkeypatch, 20, (tmp_path / "together-1.h5").unlink)
    experiments = [tables("ef21", "qsgd", TASKS["logistic"], step, rounds=40) for step in STEPS]
    monkeypatch.setattr(writer, "FLUSH_SECONDS", 0.0)
    with pytest.raises(OutputError, match=r"together-1\.h5: is not this run's log any more"):
        together(experiments, tmp_path)
    for log in (tmp_path / "together-0.h5", tmp_path / "together-2.h5"):
        assert attributes(log)["status"] == "failed" and columns(log)["round"][-1] >= 16


def key(**change):
    """Of `ABLE` with other keys; those that are None are left out."""
    merged = {name: ABLE.get(name, {}) | change.get(name, {}) for name in ABLE | change}
    for name, keys in merged.items():
        merged[name] = {k: v for k, v in keys.items() if v is not None}
    return key_of(parse(merged))


ABLE = {"problem": TASKS["logistic"] | {"data": "sample", "workers": 3}}
ABLE |= {"method": {"name": "marina", "stepsize": 0.1}, "compressor": {"name": "randk", "k": 3}}
ABLE |= {"run": {"rounds": 10}}
NO_DATA = {"data": None, "l2": None}


@pytest.mark.parametrize(
    "change",
    [
        {"method": {"name": "vr-marina", "batch": 2}},
        {"method": {"name": "dcgd", "direction": "both"}},
        {"method": {"optimizer": "amsgrad"}},
        {"compressor": {"name": "bernoulli", "p": 0.5, "k": None}},
        {"problem": {"name": "logistic-nonconvex-reg"}},
        {"problem": {"name": "quadratic", **NO_DATA}, "compressor": {"name": "topk"}},
        {"problem": {"test": "sample"}},
        {"run": {"columns": ["uniform"]}},
        {"run": {"debug": True}},
        {"run": {"dtype": "float32"}},
        {"run": {"ranks": 1}},
        {"attack": {"name": "sign-flip", "share": 0.2}},
        {"server": {"aggregate": "median"}},
        {"fleet": {"links": "mlab:BR", "devices": "phones", "seconds": 1e-3}},
    ],
)
def test_what_runs_alone(change):
    assert key(**change) == "" != key()


def test_seeds_may_differ_where_they_decide_on_the_draws_alone():
    diana, seed = {"method": {"name": "diana"}}, {"run": {"seed": 2}}
    assert key(**diana) == key(**diana, **seed)
    shuffled = {"problem": {"split": "shuffled"}}
    assert key(**diana, **shuffled) != key(**diana, **shuffled, **seed)


def test_only_steps_may_differ_where_there_are_coins():
    assert key() == key(method={"stepsize": "theory"}) == key(method={"stepsize": {"theory": 2.0}})
    others = [{"method": {"p": 0.5}}, {"compressor": {"k": 4}}, {"problem": {"l2": 0.2}}]
    others += [{"run": {"rounds": 11}}, {"run": {"seed": 2}}, {"run": {"stop": {"loss": 0.1}}}]
    assert len({key(), *(key(**other) for other in others)}) == 1 + len(others)


def test_all_that_can_advance_together_is_tried_here():
    for names, tried in (
        (PROBLEMS, TASKS),
        (ESTIMATORS, METHODS),
        (COMPRESSORS, CODES),
        (OPTIMIZERS, {"gd", "heavy-ball"}),
    ):
        assert {name for name in names if vars(names[name]).get("in_ensembles")} == set(tried)


@some_of(3, runs=[2, 11], form=FORMS)
def test_the_problem_of_an_ensemble_has_the_bits_of_the_problem(form, runs):
    a, y = make_rows(form)
    ranges = [(0, 300), (300, 301), (301, 700)]
    problem = attach("nonconvex-loss", a, y, ranges, dense=form == "dense", l2=0.1)
    xs, of_all = np.random.default_rng(1).normal(size=(runs, problem.d)), problem.repeated(runs)
    results, parts = of_all.losses_and_gradients(xs), [*map(problem.losses_and_gradients, xs)]
    for i in (0, 1):
        assert results[i].tobytes() == np.concatenate([part[i] for part in parts]).tobytes()
    assert of_all.gradients(xs).tobytes() == results[1].tobytes()
    with pytest.raises(ValueError, match="points of shape"):
        of_all.gradients(xs[1:])


def ensembles(points):
    return {attributes(point.log)["ensemble"] for point in points}


def test_a_sweep_advances_steps_together(tmp_path, command):
    grid = "method.stepsize = [0.1, 0.2, 1e300]\nrun.seed = [1, 2]"
    base = "sweep", write(tmp_path, grid), "--out"
    line = "6 points differ in step or seed alone from others, and can advance together with these"
    assert command(*base, tmp_path / "together").count(line) == 1
    assert line not in command(*base, tmp_path / "separate", "--separate")
    points, alone = (read_summary(tmp_path / name) for name in ("together", "separate"))
    assert [p.status for p in points].count("diverged") == 2
    assert ensembles(points) == {3} and ensembles(alone) == {1}
    for one, other in zip(points, alone, strict=True):
        assert differences(one.log, other.log) == [] and one.seconds is not None
        assert one.status == other.status
    assert "6 of them complete before" in command(*base, tmp_path / "together")


def test_points_that_have_begun_or_have_ranks_run_alone(tmp_path, command):
    """One was interrupted in its ensemble; the sweep goes on with it by itself."""
    file = write(tmp_path, "method.stepsize = [0.1, 0.2]")
    base = "sweep", file, "--out", tmp_path / "logs", "--set"
    assert "advance together" not in command(*base, "run.ranks=1")
    assert ensembles(read_summary(tmp_path / "logs")) == {1}
    assert "2 points differ" in command(*base, "run.rounds=20")
    # they go on from those with 20 rounds
    assert "differ in step" not in command(*base, "run.rounds=30")


def test_a_point_that_another_sweep_has_begun_meanwhile_is_resumed_alone(tmp_path):
    """Between the look at its log and the claim; an ensemble starts at round 0."""

    class Late(Claims):
        def take(self, number):
            if number:
                checkpoint.path_for(tmp_path / f"{number}.h5").touch()
            return super().take(number)

    points = [Point(f"{i}", f"{tmp_path}/{i}.h5", {}, "", number=i, alike="a") for i in (0, 1)]
    queue = Queue(points, Late(tmp_path), 1, accept=False)
    with ExitStack() as first, ExitStack() as second:
        assert queue.take(first) is points[0] and queue.take_alike(points[0], first) == []
        assert queue.take(second) is points[1] and queue.take(second) is None
