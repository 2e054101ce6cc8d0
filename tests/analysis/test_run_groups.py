"""Which logs make one curve, and what the legend says of it."""

import h5py
import pytest

from mpisim.analysis.run_groups import group_runs
from mpisim.runs.log.reader import read, read_all

TOPK = 'name = "topk"\nk = 10'
NONE = 'name = "identity"'


def labels(*paths, **options):
    return [group.label for group in group_runs(map(read, paths), **options)]


def test_seeds_make_one_group(make_log):
    groups = group_runs(read(make_log(seed=s, rounds=50 + s)) for s in range(3))
    assert [len(group.logs) for group in groups] == [3]
    assert groups[0].label == ""


def test_a_smaller_budget_is_no_further_seed(make_log):
    short, long, other = make_log(rounds=20), make_log(rounds=50), make_log(rounds=20, seed=2)
    [group] = group_runs(read_all([short, long, other]))
    assert [log.path for log in group.logs] == [long, other]
    with h5py.File(short, "r+") as file:  # as run.stop would end it
        file.attrs["config"] += "stop = { bits_up = 6400.0 }\n"
    [group] = group_runs(read_all([long, short]))
    assert [log.path for log in group.logs] == [long]
    [group] = group_runs(read_all([long, long]))  # with the same budget, all that are named
    assert len(group.logs) == 2
    with h5py.File(short, "r+") as file:  # a parameter may depend on run.rounds
        file["rounds/loss"][3] *= 2
    [group] = group_runs(read_all([long, short]))
    assert [log.path for log in group.logs] == [long, short]


def test_methods_and_compressors_have_their_papers_names(make_log):
    paths = [
        make_log(),
        make_log(method="ef21", compressor=TOPK),
        make_log(method="gd", compressor=NONE),
    ]
    assert labels(*paths) == ["MARINA, RandK (K = 10)", "EF21, TopK (K = 10)", "GD, no compression"]


def test_a_common_compressor_is_not_in_the_legend(make_log):
    assert labels(make_log(), make_log(method="diana")) == ["MARINA", "DIANA"]


def test_a_common_method_is_not_in_the_legend(make_log):
    paths = [make_log(compressor=f'name = "randk"\nk = {k}') for k in (1, 5)]
    assert labels(*paths) == ["RandK (K = 1)", "RandK (K = 5)"]


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("0.5", "γ = 0.5"),
        ("{ theory = 4.0 }", "γ = 4 × theory"),
        ('{ theory = 4.0, condition = "PL" }', "γ = 4 × theory (PL)"),
    ],
)
def test_steps_are_told(make_log, step, text):
    assert labels(make_log(), make_log(stepsize=step)) == ["γ = theory", text]


def test_a_parameter_is_told_only_among_runs_of_its_method(make_log):
    paths = [make_log(), make_log(stepsize="0.5"), make_log(method="gd", stepsize="0.25")]
    assert labels(*paths) == ["MARINA (γ = theory)", "MARINA (γ = 0.5)", "GD"]


def test_wrapped_compressors_name_the_inner_one(make_log):
    inner = 'name = "smooth"\ninner = { name = "qsgd", s = 2 }'
    assert labels(make_log(), make_log(compressor=inner))[1] == "smooth of QSGD (s = 2)"


def test_nonessential_parameters_appear_when_they_differ(make_log):
    qsgd = 'name = "qsgd"\ns = 2\nnorm = "{}"'
    paths = [make_log(compressor=qsgd.format(norm)) for norm in ("2", "inf")]
    assert labels(*paths) == ["QSGD (s = 2, norm = 2)", "QSGD (s = 2, norm = inf)"]


def test_ranks_are_a_setting_only_for_clocks(make_log):
    paths = [make_log(attrs={"ranks": ranks}) for ranks in (1, 6)]
    assert labels(*paths) == [""]
    assert labels(*paths, by_ranks=True) == ["1 rank", "6 ranks"]


def test_no_two_groups_share_a_label(make_log):
    smooth = 'name = "smooth"\ninner = {{ name = "qsgd", s = 2, norm = "{}" }}'
    paths = [make_log(compressor=smooth.format(norm)) for norm in ("2", "inf")]
    paths += [
        make_log(compressor='name = "odd"\nlist = [1]'),
        make_log(compressor='name = "odd"\nlist = [2]'),
    ]
    found = labels(*paths)
    assert len(set(found)) == 4
