"""`mpisim check` passes what mpisim has and what its templates make, and sees each mistake."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from mpisim.cli import main
from mpisim.core.schema import build
from mpisim.problems import PROBLEMS
from mpisim.problems.data.sample import write_sample
from mpisim.testing import assert_all, check, problem_checks
from mpisim.testing.method import finds_gradient
from tests.resumes import KEYS

CASES = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text())
HEAD, COMPRESSOR, METHOD, PROBLEM = CASES["plugins"].values()


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """plugin(text): the path of a file with it; what it registers is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)

    def make(text: str, name: str):
        path = tmp_path / f"plugin_{re.sub(r'[^a-z]', '_', name)}.py"
        path.write_text(HEAD + text)
        return path

    return make


@pytest.fixture
def one_process(monkeypatch):
    """No mpirun."""
    monkeypatch.setenv("PATH", "")


class Seen(Exception):
    """The mistake is found: the checks that are left need not run."""


@pytest.mark.drawn(10)
@pytest.mark.parametrize("name", CASES["mistakes"])
def test_a_mistake_is_seen(name, plugin, one_process):
    case = CASES["mistakes"][name]
    text = CASES["plugins"][case["of"]]
    assert case["right"] in text
    wrong_text = text.replace(case["right"], case["wrong"])
    if name == "f that is not convex":
        wrong_text = wrong_text.replace("return x - self", "return -x + self")
        wrong_text = wrong_text.replace("    size:", "    convex = True\n    size:")

    def look(one) -> None:
        if one.failed and re.search(case["check"], one.what):
            raise Seen(one.why)

    with pytest.raises(Seen, match=case["why"]) as seen:
        check(plugin(wrong_text, name), say=look)
    assert "\n" not in str(seen.value)


def test_what_is_right_passes(plugin, one_process, capsys):
    text = COMPRESSOR + METHOD.replace("Mine", "Ours") + PROBLEM.replace("Mine", "Squares")
    assert main(["check", str(plugin(text, "right"))]) == 0
    output = capsys.readouterr().out
    assert " 0 failed, " in output and output.count("there is no mpirun on PATH") == 6


BUILT_IN = {
    "quadratic": {"dimension": 12, "noise": 0.3, "lambda_": 0.01},
    "autoencoder": {"data": "sample", "images": 40, "code_size": 2},
    "logistic": {"data": "sample", "l2": 0.01},
    "nonconvex-loss": {"data": "sample"},
    "logistic-nonconvex-reg": {"data": "sample"},
    "least-squares": {"data": "sample"},
    "multinomial-logistic": {"data": "sample", "l2": 0.01},
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_our_problems_pass(name):
    table = {key.rstrip("_"): value for key, value in BUILT_IN[name].items()}
    assert_all(problem_checks(build(PROBLEMS[name], table, "problem")))


FIND_IT = ("dcgd", "vr-diana", "dasha-sync-mvr", "ef21-2way", "ef", "ef21-p", "marina-p")


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", FIND_IT)
def test_our_methods_find_the_gradient_where_the_point_stands_still(name, tmp_path):
    write_sample(tmp_path / "sample", rows=240)
    method = {"name": name, "stepsize": 0.1} | KEYS.get(name, {})
    problem = {"name": "logistic", "data": str(tmp_path / "sample"), "workers": 6}
    finds_gradient({"problem": problem, "method": method})


def test_error_feedback_in_the_other_order_passes(plugin, one_process, capsys):
    """v_i is used after it was sent, as the paper's lines allow: that alone is no mistake."""
    text = METHOD.replace("(x) - self.h_i", "(x) + self.h_i").replace("self.h + ", "")
    text = text.replace("m_i.add_to(self.h_i)", "v_i - m_i.decoded()")
    assert main(["check", str(plugin(text, "order"))]) == 0, capsys.readouterr().out
