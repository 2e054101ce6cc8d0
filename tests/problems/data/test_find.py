"""The registry, and where files are looked for."""

import pytest

from mpisim.core.errors import InputError
from mpisim.problems.data import find as finding
from mpisim.problems.data.find import KINDS, find, registry

PAPERS = (
    "a8a a9a w8a mushrooms phishing madelon duke gisette german.numer svmguide3 splice covtype mg"
)
PAPERS += " mnist cifar10 cifar100 sample"


def test_registry_is_complete_and_consistent():
    sets = registry()
    assert set(PAPERS.split()) <= set(sets)
    for name, dataset in sets.items():
        assert dataset.name == name and dataset.kind in KINDS
        assert dataset.rows > 0 and dataset.features > 0
        for file in dataset.files:
            assert file.urls or name == "sample"
            assert all(u.startswith("https://") for u in file.urls)
            assert file.sha256 is None or len(file.sha256) == 64
        if dataset.kind == "libsvm":
            assert len(dataset.files) == 1
    digests = [f.sha256 for d in sets.values() for f in d.files if f.sha256]
    assert len(digests) == len(set(digests))
    assert sets["mnist"].rows == 70000 and len(sets["mnist"].files) == 4
    assert sets["cifar10"].rows == sets["cifar100"].rows == 60000


def test_paths_and_names(tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    monkeypatch.setenv("MPISIM_DATA", f"{tmp_path / 'absent'}:{one}::{two}")
    monkeypatch.chdir(two)
    (two / "mine.bz2").touch()
    assert find("mine") == two / "mine.bz2"
    (one / "mine.gz").touch()
    assert find("mine") == one / "mine.gz"  # the first folder wins
    (one / "mine.xz").touch()
    assert find("mine") == one / "mine.xz"
    (one / "mine").touch()
    assert find("mine") == one / "mine"
    assert find(str(two / "mine.bz2")) == two / "mine.bz2"
    assert str(find("mine.bz2")) == "mine.bz2"  # a path from here
    (one / "covtype.libsvm.binary.bz2").touch()  # the official name of a registered set
    assert find("covtype") == one / "covtype.libsvm.binary.bz2"
    (one / "folder").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        find(str(one / "folder"))


def test_not_found_says_where_and_how(here, monkeypatch, tmp_path):
    monkeypatch.setattr(finding, "ROOT", tmp_path)
    with pytest.raises(InputError) as error:
        find("a9a")
    message = str(error.value)
    assert str(here) in message and "datasets" in message and "\n" not in message
    assert "python -m mpisim data fetch a9a" in message
    with pytest.raises(InputError, match=r"'nosuch'.*MPISIM_DATA.*mushrooms"):
        find("nosuch")


@pytest.mark.parametrize("name", ["", "no/such/file", "/", "x" * 5000, "a\0b", "~nobody/x"])
def test_odd_names(name):
    with pytest.raises(InputError, match=r"^data "):
        find(name)
