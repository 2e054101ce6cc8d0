"""The generated sample: the same bytes everywhere, and worth training on."""

import pytest

from mpisim.core.errors import InputError
from mpisim.problems.data.find import ROOT
from mpisim.problems.data.sample import sample_text, write_sample


def test_committed_file_is_what_the_generator_makes(tmp_path):
    committed = (ROOT / "datasets" / "sample").read_bytes()
    write_sample(tmp_path / "new" / "sample")
    assert (tmp_path / "new" / "sample").read_bytes() == committed
    assert len(committed) < 150_000


def test_seed_and_errors(tmp_path):
    assert sample_text(20, seed=0) != sample_text(20, seed=1)
    with pytest.raises(InputError, match="at least 1"):
        write_sample(tmp_path / "x", rows=0)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="can be written"):
        write_sample(tmp_path / "file" / "x")
    with pytest.raises(InputError, match="can be written"):
        write_sample(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
