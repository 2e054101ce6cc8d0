"""The registry, where files are looked for, `mpisim data`, and downloads from this machine."""

import bz2
import gzip
import hashlib
import http.server
import io
import socket
import tarfile
import threading
from types import SimpleNamespace

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
    assert len(committed) < 150_000 and sample_text(20, seed=0) != sample_text(20, seed=1)
    for path in (tmp_path / "new" / "sample" / "x", tmp_path):  # below a file, and a folder
        with pytest.raises(InputError, match="cannot be written"):
            write_sample(path)
    assert [p.name for p in tmp_path.rglob("*")] == ["new", "sample"]


TEXT = b"1 1:1 2:0.5\n2 3:1\n"


def tar(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


CIFAR = {"c/one.bin": bytes(3073), "c/two.bin": b"\x09" + bytes(3072)}


@pytest.fixture
def server(monkeypatch):
    """Has ``files`` by path, notes paths ``asked`` for; register(path, ...) is the set "tiny"."""
    files, asked = {}, []
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            content = files.get(self.path[1:])
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *args):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True).start()

    def register(*paths, kind="libsvm", names=("tiny.text",), port=httpd.server_port, **keys):
        urls = tuple(f"http://127.0.0.1:{port}/{path}" for path in paths)
        keys = {"rows": 2, "features": 3, "digest": None} | keys
        files = (DataFile("train", n, keys["rows"], None, "", keys["digest"], urls) for n in names)
        sets = {"tiny": Dataset("tiny", kind, keys["features"], tuple(files))}
        monkeypatch.setattr(finding, "registry", lambda: sets)

    yield SimpleNamespace(files=files, asked=asked, register=register)
    httpd.shutdown()
    httpd.server_close()


def sha(content):
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".bz2", bz2.compress), (".gz", gzip.compress)]
)
def test_download(server, tmp_path, suffix, pack):
    packed = server.files["tiny" + suffix] = pack(TEXT)
    server.register(f"tiny{suffix}", digest=sha(TEXT))
    folder = tmp_path / "new" / "datasets"
    for _ in range(2):  # the second time it is there already
        assert fetch("tiny", folder=folder) == [folder / f"tiny{suffix}"]
    assert len(server.asked) == 1
    assert [p.name for p in folder.iterdir()] == [f"tiny{suffix}"]
    (folder / f"tiny{suffix}").write_bytes(packed[:-4])  # damaged: fetched again
    fetch("tiny", folder=folder)
    assert (folder / f"tiny{suffix}").read_bytes() == packed and len(server.asked) == 2


def test_wrong_content_does_not_stay(server, tmp_path):
    page = server.files["tiny"] = b"<html>please log in</html>"
    server.register("tiny", digest=sha(TEXT))
    with pytest.raises(InputError, match=rf"{sha(page)}; [^\n]*{sha(TEXT)}"):
        fetch("tiny", folder=tmp_path)
    server.files["tiny"] = TEXT  # without a checksum, the shape is checked
    for other, line in (({"rows": 3}, "; .* has 3 and 3"), ({"features": 2}, "")):
        server.register("tiny", **other)
        with pytest.raises(InputError, match=f"2 rows and 3 features{line}"):
            fetch("tiny", folder=tmp_path)
    assert not list(tmp_path.iterdir())
    server.register("tiny")
    assert fetch("tiny", folder=tmp_path)[0].read_bytes() == TEXT


def test_second_source_when_the_first_fails(server, tmp_path):
    server.files["b/tiny"] = TEXT
    server.register("a/tiny", "b/tiny", digest=sha(TEXT))
    fetch("tiny", folder=tmp_path)
    assert server.asked == ["/a/tiny", "/b/tiny"]
    server.files["a/tiny"] = TEXT[:-1]  # complete, but not what it should be
    (tmp_path / "tiny").unlink()
    assert fetch("tiny", folder=tmp_path)[0].read_bytes() == TEXT


def test_archive_members(server, tmp_path):
    server.files["c.tar.gz"] = tar(CIFAR)
    server.register("c.tar.gz", kind="cifar10", names=tuple(CIFAR), rows=1, features=3072)
    paths = fetch("tiny", folder=tmp_path)
    assert [p.read_bytes() for p in paths] == list(CIFAR.values())
    assert server.asked == ["/c.tar.gz"]  # once for all members
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.*")) == sorted(CIFAR)
    server.register("c.tar.gz", kind="cifar10", names=("c/three.bin",), rows=1)
    with pytest.raises(InputError, match=r"c/three\.bin"):
        fetch("tiny", folder=tmp_path)


def test_missing_and_refused(server, tmp_path):
    server.register("tiny")
    with pytest.raises(InputError, match=r"HTTP status 404.*MPISIM_DATA"):
        fetch("tiny", folder=tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but nobody listens
        server.register("tiny", port=closed.getsockname()[1])
        with pytest.raises(InputError, match=r"^data 'tiny': nothing usable.*network") as error:
            fetch("tiny", folder=tmp_path)
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("right", [True, False])
def test_what_mpisim_data_holds_is_taken_or_refused(server, tmp_path, monkeypatch, right):
    server.files["tiny"] = TEXT
    server.register("tiny", digest=sha(TEXT))
    here, datasets = tmp_path / "here", tmp_path / "datasets"
    here.mkdir()
    (here / "tiny.bz2").write_bytes(bz2.compress(TEXT if right else b"1 1:2\n"))
    monkeypatch.setenv("MPISIM_DATA", str(here))
    monkeypatch.setattr(finding, "datasets_folder", lambda: datasets)
    if not right:  # it would be taken in place of a download
        for _ in range(2):
            with pytest.raises(InputError, match=r"here/tiny.bz2 hides .*datasets/tiny; remove it"):
                fetch("tiny")
        assert (datasets / "tiny").read_bytes() == TEXT
        (here / "tiny.bz2").unlink()
    assert fetch("tiny") == [here / "tiny.bz2" if right else datasets / "tiny"]
    assert len(server.asked) == (0 if right else 1) and datasets.exists() != right
    message = commands.fetched("tiny")
    assert message.endswith(", found by MPISIM_DATA") == right


def test_a_wrong_file_in_the_folder_itself_is_refused(server, tmp_path):
    server.files["tiny.gz"] = gzip.compress(TEXT)
    server.register("tiny.gz", digest=sha(TEXT))
    (tmp_path / "tiny").write_bytes(TEXT[:-4])
    with pytest.raises(InputError, match=r"tiny hides .*tiny\.gz; remove it$"):
        fetch("tiny", folder=tmp_path)
