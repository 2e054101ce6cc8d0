"""Bad inputs: each gives one line that says what, where and what is allowed.

`CASES` is (name, arguments, what the line must say). ``{d}`` in arguments is a folder that
`prepare` fills. Used on one rank by test_malformed, on three by tests/comm.
"""

import lzma
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.handmade_logs import write_log
from tests.helpers import settings as words_of

GOOD = """
[problem]
name = "logistic"
data = "{d}/good"
workers = 3
[method]
name = "dcgd"
stepsize = 0.1
[compressor]
name = "randk"
k = 2
[run]
rounds = 3
"""

LIBSVM = {
    "good": "".join(f"{'+1' if i % 2 else '-1'} 1:{i}.5 3:1\n" for i in range(12)),
    "no-colon": "+1 1:1\n-1 2\n+1 1:1\n",
    "one-label": "+1 1:1\n+1 1:2\n+1 1:3\n",
    "three-labels": "1 1:1\n2 1:2\n3 1:3\n",
    "empty": "",
}


def prepare(folder: Path) -> None:
    """Write the files that the cases name."""
    for name, text in LIBSVM.items():
        (folder / name).write_text(text)
    (folder / "binary").write_bytes(bytes(range(256)) * 4)
    (folder / "cut.xz").write_bytes(lzma.compress(LIBSVM["good"].encode() * 50)[:-20])
    (folder / "deep.toml").write_text(f"title = {'[' * 10**5}")
    (folder / "deep-tables.toml").write_text(f"[{'.'.join('a' * 50)}]\nx = 1\n")
    key = ".".join(["a", '"b\\""', "'c\"'"] * 30_000)  # would take gigabytes
    texts = {"key": f"{key} = 1", "header": f"[{key}]", "inline": f"x={{y=1, {key}=1}}"}
    for name, text in texts.items():
        (folder / f"long-{name}.toml").write_text(f"{text}\n")
    (folder / "digits.toml").write_text(f"[run]\nrounds = {'9' * 5000}\n")
    (folder / "empty.py").touch()
    os.mkfifo(folder / "pipe.h5")
    (folder / "not-really.gz").write_text("+1 1:1\n")
    (folder / "good.toml").write_text(GOOD.replace("{d}", str(folder)))
    (folder / "broken.toml").write_text("[problem\nname = 1\n")
    (folder / "latin.toml").write_bytes(b"title = '\xff'\n")
    (folder / "exists.h5").write_bytes(b"not a log")
    (folder / "a-folder").mkdir()
    (folder / "taken.h5.ckpt").mkdir()
    os.mkfifo(folder / "a-pipe")
    (folder / "grid.toml").write_text(GOOD.replace("{d}", str(folder)) + "[sweep]\n")
    (folder / "logs").mkdir()
    for seed in (1, 2):
        write_log(folder / "logs" / f"log{seed}.h5", seed=seed)


def run(*settings: str) -> list[str]:
    """``run good.toml`` with settings."""
    return ["run", "{d}/good.toml", "--out", "{d}/log.h5", *words_of(*settings)]


def words(text: str) -> list[str]:
    """Arguments as malformed.txt has them."""
    first, *others = shlex.split(text)
    if first == "set":
        return run(*others)
    if first == "picture":
        return ["plot", "{d}/logs/log1.h5", "-o", "{d}/x.png", *others]
    if first == "one":
        return [others[0], "{d}/logs/log1.h5", *others[1:]]
    if first == "data":
        return run(f"problem.data={{d}}/{others[0]}")
    return ["run", "{d}/good.toml", "--out", *others] if first == "out" else [first, *others]


def written() -> Iterator[tuple[str, list[str], list[str]]]:
    """The cases of malformed.txt."""
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, rest = line.split(": ", 1)
            arguments, message = rest.split(" -> ")
            yield name, words(arguments), message.split(" | ")


CASES: list[tuple[str, list[str], list[str]]] = [
    *written(),
    ("deep value", run("run.columns=" + "[" * 10**4), ["run.columns", "nested too deeply"]),
    ("deep key", run("a." * 10**4 + "b=1"), ["a.a.a", "nested too deeply"]),
    ("5000 digits of a key", run(f"compressor.k={'9' * 5000}"), ["--set compressor.k", "digits"]),
    *(
        (f"300 digits of {key}", run(f"{key}={'9' * 300}"), [f"{key}: an integer of 997 bits"])
        for key in ("run.rounds", "compressor.k", "method.stepsize", "problem.l2")
    ),
    ("bytes that are not UTF-8", run("title=\udcff"), ["title", "UTF-8"]),
    ("too long a name", words("out {d}/" + 300 * "x" + ".h5"), ["File name too long"]),
    ("too long beside the log", words("out {d}/" + 250 * "x" + ".h5"), ["File name too long"]),
    ("a name with a line", ["new", "compressor", "x\n"], ["is not allowed as a name"]),
    ("not UTF-8 for the log", words("out {d}/\udcff.h5"), ["udcff.h5", "UTF-8"]),
]
