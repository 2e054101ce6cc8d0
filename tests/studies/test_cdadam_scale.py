"""A batch norm undoes the scale of the weights before it (CD-Adam, Figure 3)."""

import numpy as np
import pytest

import mpisim
from mpisim.analysis.study import find
from mpisim.runs.experiment import parse

pytest.importorskip("torch")


def test_the_gradient_is_smaller_where_the_weights_are_larger(capsys):
    """f(c w) = f(w) and grad f(c w) = grad f(w) / c for a convolution before a batch norm."""
    from run.cdadam import measure_scale

    study, figure = find("cdadam-fig3")
    table = figure.source.all_points(study.folder, "quick")[1][0]
    table["problem"] |= {"data": "generated", "samples": 64, "workers": 2}
    table["run"] |= {"rounds": 2, "log_every": 1}
    x = mpisim.run(parse(table)).x
    f, parts, gradient = measure_scale.gradient_at(table, x)
    second = measure_scale.LAYERS["convolution 2"]
    parts[second] = 9 * parts[second]
    scaled_f, _, scaled = measure_scale.gradient_at(table, np.concatenate(parts))
    assert scaled_f == pytest.approx(f, rel=1e-4)
    np.testing.assert_allclose(9 * scaled[second], gradient[second], rtol=0.02, atol=1e-4)
    np.testing.assert_allclose(scaled[-1], gradient[-1], rtol=0.02, atol=1e-4)
    measure_scale.report(table)
    assert capsys.readouterr().out.count("product") == len(measure_scale.LAYERS)
