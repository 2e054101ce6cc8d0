"""Real files against the registry, where they are here (MPISIM_DATA)."""

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.problems.data import DataOptions, libsvm, prepare
from mpisim.problems.data.content import read_content, verify
from mpisim.problems.data.find import find, lookup

pytestmark = pytest.mark.real
SMALL = "a1a a5a a9a a9a.t mushrooms phishing duke leu colon-cancer german.numer svmguide3 splice"
SMALL += " mg_scale housing_scale mpg_scale sample"


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", SMALL.split())
def test_shape_entries_and_labels(name, need_data):
    need_data(name)
    dataset, path = lookup(name), find(name)
    file = dataset.files[0]
    content = read_content(path)
    assert verify(dataset, file, content, str(path)) == "sha256 agrees with the registry"
    table = libsvm.parse(content, str(path))
    assert (table.rows, len(table.data)) == (file.rows, file.nnz)
    assert table.features <= dataset.features
    if file.labels.startswith("real"):
        low, high = file.labels.removeprefix("real [").removesuffix("]").split(",")
        assert (table.labels.min(), table.labels.max()) == (float(low), float(high))
    else:
        expected = dict(tuple(map(float, part.split(":"))) for part in file.labels.split(","))
        values, counts = np.unique(table.labels, return_counts=True)
        assert dict(zip(values, counts, strict=True)) == expected


def test_regression_needs_real_labels(need_data):
    need_data("mg_scale")
    with pytest.raises(InputError, match="exactly two"):
        prepare(DataOptions("mg_scale", 2))
    assert prepare(DataOptions("mg_scale", 2, labels="real")).rows == 1385
