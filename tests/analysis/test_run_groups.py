"""Which logs make one curve, what the legend says of it, and one's own figure of chosen runs."""

import json
import shutil
from itertools import product

import h5py
import numpy as np
import pytest

import mpisim
from mpisim.analysis.run_groups import group_runs, one_setting
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read, read_all

TOPK = 'name = "topk"\nk = 10'
NONE = 'name = "identity"'


def labels(*paths, **options):
    return [group.label for group in group_runs(map(read, paths), **options)]


def test_a_smaller_budget_is_no_further_seed(make_log):
    short, long, other = make_log(rounds=20), make_log(rounds=50), make_log(rounds=20, seed=2)
    [group] = group_runs(read_all([short, long, other]))
    assert [log.path for log in group.logs] == [long, other]
    with h5py.File(short, "r+") as file:  # as run.stop would end it
        file.attrs["config"] += "stop = { bits_up = 6400.0 }\n"
    [group] = group_runs(read_all([long, short]))
    assert [log.path for log in group.logs] == [long]
    with h5py.File(short, "r+") as file:  # a parameter may depend on run.rounds
        file["rounds/loss"][3] *= 2
    message = r"log2\.h5 and .*log1\.h5: both have seed 1 of one experiment, but loss differs in "
    message += r"round 3; leave out one"
    with pytest.raises(InputError, match=message):
        group_runs(read_all([long, short]))


def test_a_seed_counts_once_whatever_its_file(make_log, tmp_path):
    one, two = make_log(), make_log(seed=2)
    copy = shutil.copy(one, tmp_path / "copy.h5")
    [group] = group_runs(read_all([one, two, copy, one]))
    assert [log.path for log in group.logs] == [one, two]

    def change(name, where, value):
        with h5py.File(copy, "r+") as file:
            file[name][where] = value
            file.attrs["host"] = "elsewhere"

    change("rounds/time_compute", ..., 3.0)  # clocks are another machine's
    assert len(group_runs(read_all([one, copy]))[0].logs) == 1
    change("rounds/grad_norm_sq", 7, np.nan)
    with pytest.raises(InputError, match=r"log1.h5 and .*copy.h5: .* grad_norm_sq differs in rou"):
        group_runs(read_all([one, copy]))
    with h5py.File(copy, "r+") as file:  # it may go on from an earlier checkpoint
        file.attrs["status"] = "running"
    assert [log.path for log in group_runs(read_all([copy, one]))[0].logs] == [copy]


def test_rows_of_a_seed_are_compared_where_both_have_one(make_log):
    full, rare = read_all([make_log(), make_log()])
    for name, values in rare.columns.items():
        rare.columns[name] = values[::10]
    [group] = group_runs([rare, full])
    assert group.logs == [full]  # as long, and with more rows


CODE = {"module mine": "aaaa", "module mpisim.runs.loop": "bbbb", "processor": "x86-64"}


def code(**changed):
    words = {name.replace("_", " ", 1): text for name, text in changed.items()}
    return {"code": json.dumps(CODE | words)}


def test_other_code_sets_runs_apart(make_log):
    """A plugin of the same name, or modules of mpisim; not the processor, nor what did not run."""
    same = [make_log(seed=1, attrs=code() | {"source": "1"})]
    same += [make_log(seed=2, attrs=code(processor="arm") | {"source": "2"})]
    assert labels(*same) == [""]
    mine = make_log(seed=3, attrs=code(module_mine="cccc") | {"ranks": 7})
    assert labels(*same, mine) == ["module mine = aaaa", "module mine = cccc"]
    timed = ["2 ranks, module mine = aaaa", "7 ranks, module mine = cccc"]
    assert labels(*same, mine, by_ranks=True) == timed
    words = code(module_mine="cccc")["code"].replace("bbbb", "dddd")
    both = labels(*same, make_log(seed=4, attrs={"code": words}))
    assert both[0].startswith("module mine and 1 more = ") and len(set(both)) == 2
    # a sweep has judged that: it runs such a point again, unless its user accepts the other code
    accepted = make_log(seed=5, attrs={"code": code()["code"].replace("bbbb", "dddd")})
    logs = read_all([same[0], accepted])
    assert one_setting(logs) == logs


def test_other_content_of_the_data_sets_runs_apart(make_log):
    texts = [f"non-convex loss on mine.txt sha256:{digit * 8}" for digit in "12"]
    paths = [make_log(seed=s, attrs={"problem": text}) for s, text in enumerate(texts)]
    assert labels(*paths) == ["data sha256 = 11111111", "data sha256 = 22222222"]
    both = [f"{texts[0]}, tested on my.t sha256:{digit * 8}" for digit in "34"]
    assert len(set(labels(*(make_log(attrs={"problem": text}) for text in both)))) == 2


def test_as_many_workers_as_ranks_set_runs_apart(make_log):
    """Without the key ``problem.workers`` the experiment does not say how many there were."""
    paths = [make_log(seed=n, attrs={"workers": n, "ranks": n}) for n in (2, 7)]
    for path in paths:
        with h5py.File(path, "r+") as file:
            file.attrs["config"] = file.attrs["config"].replace("workers = 5\n", "")
    assert labels(*paths) == ["n = 2", "n = 7"]
    with pytest.raises(InputError, match=r"differ in problem\.workers: 2 and 7"):
        one_setting(read_all(paths))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"stepsize": "0.5"}, "method.stepsize: theory and 0.5"),
        ({"compressor": 'name = "randk"\nk = 5'}, "compressor.k: 10 and 5"),
        ({"compressor": NONE}, "compressor.name: randk and identity"),
        ({"attrs": {"code": '{"module mine": "a"}'}}, "module mine: nothing and a"),
    ],
)
def test_one_setting_names_what_differs(make_log, more, message):
    logs = read_all([make_log(), make_log(seed=2), make_log(seed=3, **more)])
    with pytest.raises(InputError) as error:
        one_setting(logs)
    assert str(error.value).startswith(f"{logs[0].path} and {logs[2].path}: differ in {message}; ")
    assert "\n" not in str(error.value)


def randk(k):
    return {"compressor": f'name = "randk"\nk = {k}'}


def qsgd(norm):
    return {"compressor": f'name = "qsgd"\ns = 2\nnorm = "{norm}"'}


GD = {"method": "gd", "compressor": NONE}
EF21 = {"method": "ef21", "compressor": TOPK}
SMOOTH = {"compressor": 'name = "smooth"\ninner = { name = "qsgd", s = 2 }'}
FOUR, PL = "{ theory = 4.0 }", '{ theory = 4.0, condition = "PL" }'


@pytest.mark.parametrize(
    ("logs", "names"),
    [
        ([{}, EF21, GD], ["MARINA, RandK (K = 10)", "EF21, TopK (K = 10)", "GD, no compression"]),
        ([{}, {"method": "diana"}], ["MARINA", "DIANA"]),  # not what they have in common
        ([randk(1), randk(5)], ["RandK (K = 1)", "RandK (K = 5)"]),
        ([{}, {"stepsize": FOUR}], ["γ = theory", "γ = 4 × theory"]),
        ([{}, {"stepsize": PL}], ["γ = theory", "γ = 4 × theory (PL)"]),
        (  # a parameter only among runs of its method
            [{}, {"stepsize": "0.5"}, {"method": "gd", "stepsize": "0.25"}],
            ["MARINA (γ = theory)", "MARINA (γ = 0.5)", "GD"],
        ),
        ([{}, SMOOTH], ["RandK (K = 10)", "smooth of QSGD (s = 2)"]),
        ([qsgd("2"), qsgd("inf")], ["QSGD (s = 2, norm = 2)", "QSGD (s = 2, norm = inf)"]),
    ],
)
def test_a_label_has_what_differs(make_log, logs, names):
    assert labels(*(make_log(**how) for how in logs)) == names


@pytest.mark.parametrize(
    ("more", "apart"),
    [("schedule = { at = [0.2], factor = 0.1 }", 1), ("warmup = 0.13", 1), ("warmup = 5.0", 0)],
)
def test_shares_of_the_rounds_make_the_rounds_a_setting(make_log, more, apart):
    """A step that drops after a fifth of the rounds drops elsewhere in a longer run."""
    step = f'"theory"\n{more}'
    paths = [make_log(seed=n, rounds=30 * n, stepsize=step) for n in (1, 2)]
    groups = group_runs(read_all(paths))
    assert len(groups) == 1 + apart
    if apart:
        with pytest.raises(InputError, match=r"differ in run\.rounds: 30 and 60"):
            one_setting(read_all(paths))


matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.figure")


@pytest.fixture
def grid(make_log):
    """A folder: two methods with three steps and two seeds each, of which 0.4 is the best step."""
    rates = {"0.1": 0.05, "0.4": 0.3, "1.6": 0.01}
    for method, (step, rate), seed in product(("marina", "diana"), rates.items(), (1, 2)):
        path = make_log(method, stepsize=step, rate=rate, seed=seed)
    return path.parent


def test_axes_that_exist_keep_their_look(grid):
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"axes.facecolor": "#eeeeee", "axes.spines.top": True}):
        left, right = matplotlib.figure.Figure(figsize=(5, 4)).subplots(1, 2)
    with matplotlib.rc_context({"lines.linewidth": 5.0}):
        figure = mpisim.plot(grid, "round", ax=right, best=True, labels=["A", "B"])
    assert figure is right.figure and not left.lines
    assert [line.get_label() for line in right.lines] == ["A", "B"]
    assert {line.get_linewidth() for line in right.lines} == {5.0}
    assert matplotlib.colors.to_hex(right.get_facecolor()) == "#eeeeee"
    assert right.spines["top"].get_visible() and right.get_title() == ""
    assert dict(matplotlib.rcParams) == before
    mpisim.plot(grid, "round")
    assert dict(matplotlib.rcParams) == before


def test_latex_has_formulas_and_rules(grid, command):
    words = ["show", grid / "*.h5", "--target", "grad_norm_sq=1e-2"]
    text = command(*words, "--latex")
    for part in (r"$\|\nabla f(x^k)\|^2 \le 10^{-2}$", r"$\gamma = 0.4$", r"& $16 \pm 0$ &"):
        assert part in text
    assert r"usepackage{booktabs}" in text and text.isascii()
    text = command(*words, "--latex", "--siunitx")
    assert r"\num{16+-0}" in text and "usepackage{booktabs,siunitx}" in text
    line = command(*words, "--siunitx", code=2)
    assert "--siunitx: is not allowed without --latex" in line
