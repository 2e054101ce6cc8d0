"""The registry, where files are looked for, `mpisim data`, and downloads from this machine."""

import bz2
import gzip
import hashlib
import http.server
import shutil
import socket
import threading
from pathlib import Path

import pytest

from mpisim.cli import data as commands
from mpisim.core.errors import InputError
from mpisim.problems.data import find as finding
from mpisim.problems.data.fetch import fetch
from mpisim.problems.data.find import ROOT, DataFile, Dataset, find, registry
from mpisim.problems.data.sample import sample_text, write_sample


def test_paths_and_names(tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two, one / "folder"):
        folder.mkdir()
    monkeypatch.setenv("MPISIM_DATA", f"{tmp_path / 'absent'}:{one}::{two}")
    monkeypatch.chdir(two)
    # the first folder wins, and in it each of these over those before
    for path in (two / "mine.bz2", one / "mine.gz", one / "mine.xz", one / "mine"):
        path.touch()
        assert find("mine") == path
    assert find(str(two / "mine.bz2")) == two / "mine.bz2"
    assert str(find("mine.bz2")) == "mine.bz2"  # a path from here
    (one / "covtype.libsvm.binary.bz2").touch()  # the official name of a registered set
    assert find("covtype") == one / "covtype.libsvm.binary.bz2"
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
    for name in ("", "no/such/file", "/", "x" * 5000, "a\0b", "~nobody/x"):
        with pytest.raises(InputError, match=r"^data "):
            find(name)


def test_list(here, monkeypatch, tmp_path):
    monkeypatch.setattr(finding, "ROOT", tmp_path)
    (here / "w8a.xz").touch()
    (here / "train-images-idx3-ubyte.gz").touch()
    lines = {line.split()[0]: line for line in commands.list_text().splitlines()}
    assert list(lines) == ["name", *registry()]
    assert lines["w8a"].split() == ["w8a", "49749", "300", str(here / "w8a.xz")]
    assert lines["a9a"].endswith("not here") and "1 of 4 files" in lines["mnist"]


OTHER = "1 1:3 2:4\n0 2:1\n1 7:2\n"
INFO = [  # the name, what the file has, and what is said of it
    ("sample", None, ["sha256 agrees", "1600 rows, largest index 123", "labels -1: 1192, 1: 408"]),
    ("sample", OTHER, ["NOT the registered file", "3 rows, largest index 7, 4 entries"]),
    ("sample", OTHER, ["labels 0: 1, 1: 2", "row norms 1 to 5"]),
    ("mg", "0.5 1:1\n" * 3, ["NOT the registered file"]),
    ("mg", "0.5 6:1\n" * 1385, ["no sha256 for it: only rows and features were checked"]),
]


@pytest.mark.parametrize(("name", "content", "said"), INFO)
def test_info_measures_and_verifies(name, content, said, here):
    (here / name).write_text(content or (ROOT / "datasets" / name).read_text())
    text = commands.info_text(name)
    assert all(part in text for part in said)


def test_committed_file_is_what_the_generator_makes(tmp_path):
    path = tmp_path / "new" / "sample"
    write_sample(path)
    assert path.read_bytes() == (ROOT / "datasets" / "sample").read_bytes()
    assert path.stat().st_size < 150_000 and sample_text(20, seed=0) != sample_text(20, seed=1)
    for nowhere in (path / "x", tmp_path):  # below a file, and a folder
        with pytest.raises(InputError, match="cannot be written"):
            write_sample(nowhere)
    assert [p.name for p in tmp_path.rglob("*")] == ["new", "sample"]


TEXT = b"1 1:1 2:0.5\n2 3:1\n"


CIFAR = {"c/one.bin": bytes(3073), "c/two.bin": b"\x09" + bytes(3072)}
SHA = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def serve(monkeypatch):
    """serve({path: content}, ...): the sources of the set "tiny"; notes paths ``asked`` for."""
    served, asked = {}, []
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path[1:])
            content = served.get(self.path[1:])
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *args):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()

    def serve(files, digest=SHA, rows=2, features=3, kind="libsvm", names=("tiny.text",), port=0):
        served.update(files)
        urls = tuple(f"http://127.0.0.1:{port or httpd.server_port}/{path}" for path in files)
        parts = tuple(DataFile("train", name, rows, None, "", digest, urls) for name in names)
        sets = {"tiny": Dataset("tiny", kind, features, parts)}
        monkeypatch.setattr(finding, "registry", lambda: sets)

    serve.asked = asked
    yield serve
    httpd.shutdown()
    httpd.server_close()


PACKINGS = [("", bytes), (".bz2", bz2.compress), (".gz", gzip.compress)]


@pytest.mark.parametrize(("suffix", "pack"), PACKINGS)
def test_download(serve, tmp_path, suffix, pack):
    folder, packed = tmp_path / "new" / "datasets", pack(TEXT)
    path = folder / f"tiny{suffix}"
    serve({path.name: packed})
    for _ in range(2):  # the second time it is there already
        assert fetch("tiny", folder=folder) == [path]
    assert len(serve.asked) == 1 and list(folder.iterdir()) == [path]
    path.write_bytes(packed[:-4])  # damaged: fetched again
    fetch("tiny", folder=folder)
    assert path.read_bytes() == packed and len(serve.asked) == 2


def test_wrong_content_does_not_stay(serve, tmp_path):
    page = b"<html>please log in</html>"
    without = {"tiny": TEXT}, None  # a checksum: the shape is checked
    for wrong, line in (
        (({"tiny": page},), rf"{hashlib.sha256(page).hexdigest()}; [^\n]*{SHA}"),
        ((*without, 3), "2 rows and 3 features; .* has 3 and 3"),
        ((*without, 2, 2), "2 rows and 3 features"),
        (({"nowhere": None},), r"HTTP status 404.*MPISIM_DATA"),
    ):
        serve(*wrong)
        with pytest.raises(InputError, match=rf"^data 'tiny': nothing usable.*{line}") as error:
            fetch("tiny", folder=tmp_path)
        assert "\n" not in str(error.value) and not list(tmp_path.iterdir())
    serve(*without)
    assert fetch("tiny", folder=tmp_path)[0].read_bytes() == TEXT


def test_nobody_listens(serve, tmp_path):
    with socket.socket() as closed, pytest.raises(InputError, match=r"'tiny': nothing .*network"):
        closed.bind(("127.0.0.1", 0))  # bound, but not open
        serve({"tiny": TEXT}, port=closed.getsockname()[1])
        fetch("tiny", folder=tmp_path)


@pytest.mark.parametrize("first", [None, TEXT[:-1]])  # complete, but not what it should be
def test_second_source_when_the_first_fails(serve, tmp_path, first):
    serve({"a/tiny": first, "b/tiny": TEXT})
    assert fetch("tiny", folder=tmp_path)[0].read_bytes() == TEXT
    assert serve.asked == ["a/tiny", "b/tiny"]


def test_archive_members(serve, tmp_path):
    folder, got = tmp_path / "c", tmp_path / "got"
    folder.mkdir()
    for name, content in CIFAR.items():
        (tmp_path / name).write_bytes(content)
    archive = shutil.make_archive(str(folder), "gztar", tmp_path, "c")
    files, keys = {"c.tar.gz": Path(archive).read_bytes()}, {"digest": None, "kind": "cifar10"}
    serve(files, names=tuple(CIFAR), features=3072, rows=1, **keys)
    assert fetch("tiny", folder=got) == [got / name for name in CIFAR]
    assert {name: (got / name).read_bytes() for name in CIFAR} == CIFAR
    assert serve.asked == ["c.tar.gz"]  # once for all members
    assert sorted(p.name for p in got.rglob("*")) == ["c", "one.bin", "two.bin"]
    serve(files, names=("c/three.bin",), rows=1, **keys)
    with pytest.raises(InputError, match=r"c/three\.bin"):
        fetch("tiny", folder=got)


def test_what_mpisim_data_holds_is_taken(serve, tmp_path, here):
    serve({"tiny": TEXT})
    (here / "tiny.bz2").write_bytes(bz2.compress(TEXT))
    assert fetch("tiny") == [here / "tiny.bz2"] and not serve.asked
    assert commands.fetched("tiny").endswith(", found by MPISIM_DATA")


def test_a_wrong_file_in_the_folder_itself_is_refused(serve, tmp_path):
    serve({"tiny.gz": gzip.compress(TEXT)})
    (tmp_path / "tiny").write_bytes(TEXT[:-4])
    with pytest.raises(InputError, match=r"tiny hides .*tiny\.gz; remove it$"):
        fetch("tiny", folder=tmp_path)


def test_what_would_be_taken_in_place_of_a_download_is_refused(serve, tmp_path, monkeypatch, here):
    serve({"tiny": TEXT})
    datasets, held = tmp_path / "datasets", here / "tiny.bz2"
    held.write_bytes(bz2.compress(b"1 1:2\n"))
    monkeypatch.setattr(finding, "datasets_folder", lambda: datasets)
    for _ in range(2):
        with pytest.raises(InputError, match=r"here/tiny.bz2 hides .*datasets/tiny; remove it"):
            fetch("tiny")
    assert (datasets / "tiny").read_bytes() == TEXT
    held.unlink()
    assert fetch("tiny") == [datasets / "tiny"] and len(serve.asked) == 1
    assert not commands.fetched("tiny").endswith("MPISIM_DATA")
