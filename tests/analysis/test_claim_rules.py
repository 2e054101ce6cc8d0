"""Claims of several pieces of evidence; files of claims, and what the command prints of them."""

import dataclasses

import pytest

from mpisim.analysis import claims as api
from mpisim.analysis.claims import Claim, Evidence, Verdict, every, most, state
from mpisim.analysis.commands import read_claims
from mpisim.core.errors import InputError

HOLDS, FAILS, CROSSES, TIE, UNDECIDED = Verdict
TEXTS = '"claim": "a", "quote": "", "source": "b", "measured": "c"'


def some(*verdicts):
    named = enumerate(verdicts)
    return [Evidence(f"set {i}", "1.2 times", verdict, {"median": 1 + i}) for i, verdict in named]


@pytest.mark.parametrize(
    ("rule", "verdicts", "verdict"),
    [
        *((every, [], UNDECIDED), (every, [HOLDS, HOLDS], HOLDS), (every, [HOLDS, TIE], FAILS)),
        *((every, [HOLDS, UNDECIDED, FAILS], FAILS), (every, [HOLDS, UNDECIDED, TIE], FAILS)),
        *((every, [HOLDS, UNDECIDED, CROSSES], CROSSES), (every, [HOLDS, UNDECIDED], UNDECIDED)),
        *(
            (most, [], UNDECIDED),
            (most, [HOLDS, HOLDS, FAILS], HOLDS),
            (most, [HOLDS, FAILS], FAILS),
        ),
        *((most, [HOLDS, UNDECIDED, FAILS], UNDECIDED), (most, [HOLDS, TIE, FAILS], FAILS)),
    ],
)
def test_several_data_sets_are_one_claim(rule, verdicts, verdict):
    claim = state("a", "they say", "there", some(*verdicts), rule)
    assert claim.verdict is verdict and len(claim.evidence) == len(verdicts)


def test_when_d_is_larger():
    result = api.larger_half(some(FAILS, FAILS, FAILS, HOLDS, HOLDS))
    assert [one.counts for one in result] == [False] * 3 + [True] * 2
    claim = state("a", "when d is larger", "there", result)
    assert claim.verdict is HOLDS and "set 2 (aside): 1.2 times" in claim.measured
    assert [one.counts for one in api.larger_half(some(HOLDS))] == [True]


def test_what_failed_and_ties_are_named():
    evidence = some(*[HOLDS] * 9, TIE, FAILS, FAILS)
    failed = "does not hold: set 10 (11), set 11 (12)"
    measured = f"9 of 12, 1 to 12 times; {failed}; tie: set 9 (10)"
    assert state("a", "", "there", evidence).measured == measured
    several = [dataclasses.replace(one, where=f"a9a, {one.where}") for one in evidence]
    failed = "does not hold: a9a, set 10 (11); a9a, set 11 (12); tie"
    assert failed in state("a", "", "there", several).measured
    both = state("both", "", "", some(HOLDS, TIE))
    assert both.measured == "set 0: 1.2 times; set 1: a tie, 1.2 times"
    assert f"{'':17}- set 1: tie: 1.2 times" in api.table("x", [both]).splitlines()


@pytest.mark.parametrize(
    "content",
    [
        *("", "{}1", "3", '[{"claim": "alone"}]', '["text"]'),
        '[{"claim": "a", "source": "b", "measured": "c", "holds": true, "details": {}}]',  # old
        f'[{{{TEXTS}, "verdict": "yes", "evidence": []}}]',
        f'[{{{TEXTS}, "verdict": "holds", "evidence": []}}]'.replace('"c"', "3"),
    ],
)
def test_what_is_no_list_of_claims(tmp_path, content):
    path = tmp_path / "x.claims.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"x\.claims\.json: not a list of .*draw the figure again"):
        api.read(path)


def test_the_command_counts_study_by_study(tmp_path, command):
    def write(name, *verdicts):
        claims = [Claim("a | b", "they say", "there", "2 times", one) for one in verdicts]
        api.write(tmp_path / f"{name}.claims.json", claims)

    write("first-fig1", TIE, HOLDS)
    write("first-fig2", UNDECIDED)
    write("second-fig1", FAILS)
    assert command("study", "--claims", tmp_path).splitlines() == [
        "first: 1 holds, 1 tie, 1 not decided",
        "  tie            fig1  a | b: 2 times",
        "  holds          fig1  a | b: 2 times",
        "  not decided    fig2  a | b: 2 times",
        "",
        "second: 1 does not hold",
        "  does not hold  fig1  a | b: 2 times",
    ]
    lines = command("study", "--claims", tmp_path, "--markdown").splitlines()
    assert lines[:3] == [
        "| study | hold | do not hold | cross | ties | not decided | firm |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| first | 1 | 0 | 0 | 1 | 1 |  |",
    ]
    assert '| fig1 | "they say" (there) | a \\| b | tie | 2 times |' in lines
    text = command("study", "--claims", tmp_path, "--sensitivity")
    assert "0 comparisons, of which chance alone would decide 0" in text
    assert api.overview({}) == ""
    write("saq-code-fig4", TIE)  # of the study run/saq
    write("my-paper-fig1", TIE)  # of a study elsewhere
    judged = read_claims(tmp_path)[0]
    assert [*judged] == ["first", "my-paper", "saq", "second"] and [*judged["saq"]] == ["code-fig4"]
