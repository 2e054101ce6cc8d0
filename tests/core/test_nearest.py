"""What was probably meant by a name that is not known."""

import pytest

from mpisim.cli import main
from mpisim.core.errors import suggestion

NAMES = ("randk", "topk", "rank-k", "qsgd")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("TopK", "topk"),
        ("top_k", "topk"),
        ("rand-d-k", "randk"),
        ("rnadk", "randk"),
        ("qgsd", "qsgd"),
        ("nothing", ""),
        (3, ""),
        ("x" * 100_000, ""),
    ],
)
def test_meant(name, near):
    assert suggestion(name, NAMES) == (f"did you mean {near!r}? " if near else "")


EXPERIMENT = """
[problem]
name = "logistic"
data = "sample"
workers = 2
[method]
name = "gd"
stepsize = 0.1
[run]
rounds = 1
"""


def test_files_of_the_other_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.toml").write_text(EXPERIMENT)
    (tmp_path / "grid.toml").write_text(EXPERIMENT + "[sweep]\nseeds = [1]\n")
    assert main(["run", "grid.toml"]) == 2
    said = "mpisim: grid.toml: has a grid, [sweep]; did you mean `mpisim sweep grid.toml`?\n"
    assert capsys.readouterr().err == said
    assert main(["sweep", "one.toml"]) == 0  # it is a grid of one point
    said = "mpisim: one.toml: has no [sweep], so it is a grid of one point\n"
    assert capsys.readouterr().err.startswith(said)
    assert main(["sweep", "grid.toml"]) == 0
    assert "has no [sweep]" not in capsys.readouterr().err
