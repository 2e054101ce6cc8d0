"""Downloads from a server on this machine: checked, whole or absent, and soon refused."""

import bz2
import gzip
import hashlib
import http.server
import io
import socket
import tarfile
import threading

import pytest

from mpisim.cli import data as data_commands
from mpisim.core.errors import InputError
from mpisim.problems.data import fetch as fetching
from mpisim.problems.data.fetch import fetch
from mpisim.problems.data.find import DataFile, Dataset

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
def server():
    """(base URL, files to serve by path, paths asked for)."""
    files, asked = {}, []

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
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", files, asked
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture
def register(monkeypatch):
    """register(kind, url, ...) makes a registered set called "tiny"."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def make(*urls, kind="libsvm", names=("tiny.text",), digest=None, rows=2, features=3):
        files = tuple(DataFile("train", n, rows, None, "", digest, urls) for n in names)
        sets = {"tiny": Dataset("tiny", kind, features, files)}
        monkeypatch.setattr(fetching, "registry", lambda: sets)

    return make


def sha(content):
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".bz2", bz2.compress), (".gz", gzip.compress)]
)
def test_download(server, register, tmp_path, suffix, pack):
    url, files, asked = server
    packed = files["tiny" + suffix] = pack(TEXT)
    register(f"{url}/tiny{suffix}", digest=sha(TEXT))
    folder = tmp_path / "new" / "datasets"
    for _ in range(2):  # the second time it is there already
        assert fetch("tiny", folder=folder) == [folder / f"tiny{suffix}"]
    assert len(asked) == 1
    assert [p.name for p in folder.iterdir()] == [f"tiny{suffix}"]
    (folder / f"tiny{suffix}").write_bytes(packed[:-4])  # damaged: fetched again
    fetch("tiny", folder=folder)
    assert (folder / f"tiny{suffix}").read_bytes() == packed and len(asked) == 2


def test_wrong_content_does_not_stay(server, register, tmp_path):
    url, files, _ = server
    files["tiny"] = b"<html>please log in</html>"
    register(f"{url}/tiny", digest=sha(TEXT))
    with pytest.raises(InputError) as error:
        fetch("tiny", folder=tmp_path)
    message = str(error.value)
    assert sha(TEXT) in message and sha(files["tiny"]) in message and "\n" not in message
    assert not list(tmp_path.iterdir())


def test_without_checksum_the_shape_is_checked(server, register, tmp_path):
    url, files, _ = server
    files["tiny"] = TEXT
    register(f"{url}/tiny", rows=3)
    with pytest.raises(InputError, match=r"2 rows and 3 features; .* has 3 and 3"):
        fetch("tiny", folder=tmp_path)
    register(f"{url}/tiny", features=2)
    with pytest.raises(InputError, match="2 rows and 3 features"):
        fetch("tiny", folder=tmp_path)
    assert not list(tmp_path.iterdir())
    register(f"{url}/tiny")
    assert fetch("tiny", folder=tmp_path)[0].read_bytes() == TEXT


def test_second_source_when_the_first_fails(server, register, tmp_path):
    url, files, asked = server
    files["b/tiny"] = TEXT
    register(f"{url}/a/tiny", f"{url}/b/tiny", digest=sha(TEXT))
    fetch("tiny", folder=tmp_path)
    assert asked == ["/a/tiny", "/b/tiny"]
    files["a/tiny"] = TEXT[:-1]  # complete, but not what it should be
    (tmp_path / "tiny").unlink()
    assert fetch("tiny", folder=tmp_path)[0].read_bytes() == TEXT


def test_archive_members(server, register, tmp_path):
    url, files, asked = server
    files["c.tar.gz"] = tar(CIFAR)
    register(f"{url}/c.tar.gz", kind="cifar10", names=tuple(CIFAR), rows=1, features=3072)
    paths = fetch("tiny", folder=tmp_path)
    assert [p.read_bytes() for p in paths] == list(CIFAR.values())
    assert asked == ["/c.tar.gz"]  # once for all members
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.*")) == sorted(CIFAR)
    register(f"{url}/c.tar.gz", kind="cifar10", names=("c/three.bin",), rows=1)
    with pytest.raises(InputError, match=r"c/three\.bin"):
        fetch("tiny", folder=tmp_path)


def test_missing_and_refused(server, register, tmp_path):
    url, _, _ = server
    register(f"{url}/tiny")
    with pytest.raises(InputError, match=r"HTTP status 404.*MPISIM_DATA"):
        fetch("tiny", folder=tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but nobody listens
        register(f"http://127.0.0.1:{closed.getsockname()[1]}/tiny")
        with pytest.raises(InputError, match=r"^data 'tiny': nothing usable.*network") as error:
            fetch("tiny", folder=tmp_path)
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("right", [True, False])
def test_what_mpisim_data_holds_needs_no_network(server, register, tmp_path, monkeypatch, right):
    url, files, asked = server
    files["tiny"] = TEXT
    register(f"{url}/tiny", digest=sha(TEXT))
    here, datasets = tmp_path / "here", tmp_path / "datasets"
    here.mkdir()
    (here / "tiny.bz2").write_bytes(bz2.compress(TEXT if right else b"1 1:2\n"))
    monkeypatch.setenv("MPISIM_DATA", str(here))
    monkeypatch.setattr(fetching, "datasets_folder", lambda: datasets)
    assert fetch("tiny") == [here / "tiny.bz2" if right else datasets / "tiny"]
    assert len(asked) == (0 if right else 1) and datasets.exists() != right
    message = data_commands.fetched("tiny")
    assert message.endswith(", found by MPISIM_DATA") == right
