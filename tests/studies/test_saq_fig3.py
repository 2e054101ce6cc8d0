"""SAQ, Figure 3: what is measured, against the string coder, and the claims of known numbers."""

import importlib
import sys
from math import comb, log2
from pathlib import Path

import numpy as np
import pytest
from mpisim.analysis.papers import saq_fig3

from mpisim.cli import main
from mpisim.core.errors import InputError, WireError
from mpisim.core.rng import Draw, Streams
from tests.wire import string_elias

ROOT = Path(__file__).parents[2]
H = np.abs(np.random.default_rng(0).standard_normal((40, 50)))


@pytest.fixture
def script(monkeypatch):
    """The module run/saq_fig3.py, with 40 step vectors."""
    monkeypatch.syspath_prepend(ROOT / "run")
    module = importlib.import_module("saq_fig3")
    monkeypatch.setattr(module, "STEPS", 40)
    yield module
    del sys.modules["saq_fig3"]


def test_every_bit_is_the_string_coders(script):
    x = script.sparse_poisson(Streams(1), 3, 10, 0.5)
    draw = Draw(Streams(1), "up", 0, 0, 40)
    levels, bits = script.sent(script.Given(H, "elias").bind(50, 40, script.PRECISION), x, draw)
    assert bits.tolist() == [32 + len(string_elias.triples(row)) for row in levels]
    assert ((levels > 0) <= (x > 0)).all() and (levels > 0).any(axis=1).all()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert np.abs(levels - unit / H).max() < 1 + 1e-4


def test_vectors_are_sparse_poisson(script):
    for mean, density in ((10, 0.25), (100, 1.0)):
        x = script.sparse_poisson(Streams(1), 0, mean, density)
        assert (np.count_nonzero(x, axis=1) == round(50 * density)).all()
        assert x[x > 0].mean() == pytest.approx(mean, rel=0.1)
    again = script.sparse_poisson(Streams(1), 0, 100, 1.0)
    assert np.array_equal(x, again) and not np.array_equal(
        x, script.sparse_poisson(Streams(1), 1, 100, 1.0)
    )


def test_entropy_by_hand(script, monkeypatch):
    monkeypatch.setattr(script, "D", 4)
    assert script.empirical_entropy(np.array([[0, 0, 1, -1], [0, 0, 0, 0], [1, 2, 3, 4]])) == (
        pytest.approx([32 + 2 + 4, 32, 32 + 4 + 8])
    )


def test_what_does_not_come_back_is_an_error(script, monkeypatch):
    compressor = script.Given(H, "elias").bind(50, 40, script.PRECISION)
    draw, x = Draw(Streams(1), "up", 0, 0, 40), np.ones((40, 50))
    other = compressor.compress(2 * x, Draw(Streams(1), "up", 1, 0, 40))
    monkeypatch.setattr(
        type(compressor.form(draw)), "decode", lambda self, data, sizes: other, raising=True
    )
    with pytest.raises(WireError, match="not what was encoded"):
        script.sent(compressor, x, draw)


def test_measured_drawn_and_claimed(script, tmp_path, capsys):
    script.measure(tmp_path, 2)
    assert "2 vectors" in capsys.readouterr().out
    measured = saq_fig3.read(tmp_path)
    assert measured.inverse_norm.shape == (40,) and measured.vectors == 2
    assert measured.bits["elias"].shape == measured.support.shape == (3, 4, 40)
    assert (measured.bits["none"] < measured.bits["entropy"]).all()
    most = max(31 + log2(50) + log2(comb(50, k)) + k for k in range(51))
    assert (measured.support >= 31 + log2(50)).all() and (measured.support <= most + 1e-9).all()
    saq_fig3.draw(measured).savefig(tmp_path / "figure.png")
    claims = saq_fig3.claims(measured)
    assert len(claims) == 3 * 4 + 3 and all(claim.holds for claim in claims[-3:])


def test_claims_that_do_not_hold():
    norm, rng = np.linspace(10, 1000, 500), np.random.default_rng(0)
    shape = (3, 4, 500)
    bits = {code: np.broadcast_to(50 + norm, shape) for code in saq_fig3.CODES}
    support = np.full(shape, 49.0)
    growing = saq_fig3.claims(saq_fig3.Measured(norm, bits, support, 1))
    assert all(claim.holds for claim in growing)
    falling = bits | {"elias": np.broadcast_to(2000 - norm, shape)}
    noise = bits | {"elias": rng.random(shape)}
    for other in (falling, noise):
        claims = saq_fig3.claims(saq_fig3.Measured(norm, other, support, 1))
        assert not any(claim.holds for claim in claims[:12])
    claims = saq_fig3.claims(saq_fig3.Measured(norm, bits, support - 3, 1))
    assert not any(claim.holds for claim in claims[12:])


def test_nothing_measured_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"bits\.h5: cannot be read; run/figure\.py saq-fig3"):
        saq_fig3.read(tmp_path)


def test_from_the_command_to_the_picture(script, monkeypatch, tmp_path, capsys):
    """run/figure.py measures where there is no grid, and `mpisim figure` draws what it left."""
    figure = importlib.import_module("figure")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(saq_fig3, "SCALES", {"quick": 1})
    monkeypatch.setattr(sys, "argv", ["figure.py", "saq-fig3", "quick"])
    assert figure.main() == 0
    assert saq_fig3.read(tmp_path / "logs" / "saq-fig3").vectors == 1
    assert main(["figure", "saq-fig3"]) == 0
    assert "15 claims hold" in capsys.readouterr().out
    assert (tmp_path / "figures" / "saq-fig3.png").stat().st_size > 10_000
    monkeypatch.setattr(sys, "argv", ["figure.py", "saq-fig3", "huge"])
    assert figure.main() == 2
    assert "SCALE=huge is not allowed; it must be quick" in capsys.readouterr().err
    del sys.modules["figure"]
