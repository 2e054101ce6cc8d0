"""The registry, where files are looked for, `mpisim data` and the generated sample."""

import pytest

from mpisim.cli import data as commands
from mpisim.core.errors import InputError
from mpisim.problems.data import find as finding
from mpisim.problems.data.find import KINDS, ROOT, find, registry
from mpisim.problems.data.sample import sample_text, write_sample

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


def test_a_missing_set_says_where_and_how(here, monkeypatch, tmp_path):
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


def test_list(here, monkeypatch, tmp_path):
    monkeypatch.setattr(finding, "ROOT", tmp_path)
    (here / "w8a.xz").touch()
    (here / "train-images-idx3-ubyte.gz").touch()
    lines = {line.split()[0]: line for line in commands.list_text().splitlines()}
    assert list(lines) == ["name", *registry()]
    assert lines["w8a"].split() == ["w8a", "49749", "300", str(here / "w8a.xz")]
    assert lines["a9a"].endswith("not here")
    assert "1 of 4 files" in lines["mnist"]


def test_info_measures_and_verifies(here):
    (here / "sample").write_bytes((ROOT / "datasets" / "sample").read_bytes())
    text = commands.info_text("sample")
    assert "sha256 agrees with the registry" in text
    assert "1600 rows, largest index 123, 22213 entries" in text
    assert "labels -1: 1192, 1: 408" in text
    (here / "sample").write_text("1 1:3 2:4\n0 2:1\n1 7:2\n")
    text = commands.info_text("sample")
    assert "NOT the registered file" in text and "3 rows, largest index 7, 4 entries" in text
    assert "labels 0: 1, 1: 2" in text and "row norms 1 to 5" in text
    (here / "mg").write_text("0.5 1:1\n" * 3)
    assert "NOT the registered file" in commands.info_text("mg")
    (here / "mg").write_text("0.5 6:1\n" * 1385)
    assert "no sha256 for it: only rows and features were checked" in commands.info_text("mg")


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
