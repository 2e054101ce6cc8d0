"""SAQ, Figure 3: what is measured, against the string coder, and the claims of known numbers."""

from importlib import import_module
from math import comb, log2
from pathlib import Path

import numpy as np
import pytest

from mpisim.analysis.claims import counts
from mpisim.analysis.claims import read as read_claims
from mpisim.analysis.study import find
from mpisim.cli import main
from mpisim.core.rng import Draw, Streams
from mpisim.wire.levels import LevelsForm
from run.saq import fig3, measure_fig3
from tests.wire import string_elias

ROOT = Path(__file__).parents[2]
H = np.abs(np.random.default_rng(0).standard_normal((40, 50)))


@pytest.fixture
def script(monkeypatch):
    """The module that measures, with 40 step vectors."""
    monkeypatch.setattr(measure_fig3, "STEPS", 40)
    return measure_fig3


def form(script):
    return LevelsForm(50, 40, script.PRECISION, 1 / H, script.ONE_BLOCK)


def test_every_bit_is_the_string_coders(script):
    x = script.sparse_poisson(Streams(1), 3, 10, 0.5)
    draw = Draw(Streams(1), "up", 0, 0, 40)
    message = script.Given(H).bind(50, 40, script.PRECISION).compress(x, draw)
    levels, bits = message.levels, script.bits_read(message, form(script))
    assert bits.tolist() == [32 + len(string_elias.triples(row)) for row in levels]
    assert ((levels > 0) <= (x > 0)).all() and (levels > 0).any(axis=1).all()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert np.abs(levels - unit / H).max() < 1 + 1e-4


def test_measured_drawn_and_claimed(script, tmp_path, capsys):
    script.measure(tmp_path, 2)
    assert "2 vectors" in capsys.readouterr().out
    measured = fig3.read(tmp_path)
    assert measured.inverse_norm.shape == (40,) and measured.vectors == 2
    assert measured.bits["elias"].shape == measured.support.shape == (3, 4, 40)
    assert (measured.bits["none"] < measured.bits["entropy"]).all()
    most = max(31 + log2(50) + log2(comb(50, k)) + k for k in range(51))
    assert (measured.support >= 31 + log2(50)).all() and (measured.support <= most + 1e-9).all()
    fig3.draw(measured).savefig(tmp_path / "figure.png")
    claims = list(fig3.claims(measured))
    assert [len(claim.evidence) for claim in claims] == [3 * 4, 3]
    assert claims[1].verdict == "holds"


def test_claims_that_do_not_hold():
    norm, rng = np.linspace(10, 1000, 500), np.random.default_rng(0)
    shape = (3, 4, 500)
    bits = {code: np.broadcast_to(50 + norm, shape) for code in fig3.CODES}
    support = np.full(shape, 49.0)
    growing = fig3.claims(fig3.Measured(norm, bits, support, 1))
    assert [claim.verdict for claim in growing] == ["holds", "holds"]
    falling = bits | {"elias": np.broadcast_to(2000 - norm, shape)}
    noise = bits | {"elias": rng.random(shape)}
    for other in (falling, noise):
        claim, _ = fig3.claims(fig3.Measured(norm, other, support, 1))
        assert {one.verdict for one in claim.evidence} == {"does not hold"}
    _, claim = fig3.claims(fig3.Measured(norm, bits, support - 3, 1))
    assert {one.verdict for one in claim.evidence} == {"does not hold"}


def test_from_the_command_to_the_picture(monkeypatch, tmp_path, capsys):
    """`mpisim study` measures where there is no grid; `mpisim study --draw` draws what it left."""
    _, figure = find("saq-fig3")
    monkeypatch.chdir(tmp_path)
    package = figure.source.module.rpartition(".")[0]
    monkeypatch.setattr(import_module(figure.source.module), "STEPS", 40)
    monkeypatch.setitem(figure.source.scales, "quick", 1)
    folder = str(ROOT / "run" / "saq")

    def said() -> str:
        claims = read_claims(Path("figures/saq-fig3.claims.json"))
        assert len(claims) > 0
        return f"saq-fig3: {counts(claims)}\n"

    assert main(["study", folder, "fig3"]) == 0
    assert said() in capsys.readouterr().out
    assert import_module(f"{package}.fig3").read(Path("logs/saq-fig3")).vectors == 1
    (tmp_path / "figures" / "saq-fig3.png").unlink()
    assert main(["study", "--draw", "saq-fig3"]) == 0
    assert said() in capsys.readouterr().out
    assert (tmp_path / "figures" / "saq-fig3.png").stat().st_size > 10_000
    assert main(["study", folder, "fig3", "--scale", "huge"]) == 2
    assert "--scale: unknown name 'huge'; known: paper, quick" in capsys.readouterr().err
