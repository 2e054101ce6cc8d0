"""Bad inputs: each gives one line that says what, where and what is allowed.

`CASES` is (name, arguments, what the line must say). ``{d}`` in arguments is a folder that
`prepare` fills. Used on one rank by test_malformed, on three by tests/comm.
"""

from __future__ import annotations

import bz2
import lzma
import os
from pathlib import Path

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
    "index-0": "+1 1:1\n-1 0:1\n+1 1:1\n",
    "descending": "+1 1:1\n-1 3:1 2:1\n+1 1:1\n",
    "duplicate": "+1 1:1\n-1 3:1 3:1\n+1 1:1\n",
    "word": "+1 1:1\n-1 1:abc\n+1 1:1\n",
    "nan": "+1 1:1\n-1 1:nan\n+1 1:1\n",
    "infinite": "+1 1:1\n-1 1:inf\n+1 1:1\n",
    "label": "+1 1:1\nyes 1:1\n+1 1:1\n",
    "one-label": "+1 1:1\n+1 1:2\n+1 1:3\n",
    "three-labels": "1 1:1\n2 1:2\n3 1:3\n",
    "empty": "",
    "negative-index": "+1 1:1\n-1 -3:1\n+1 1:1\n",
}


def prepare(folder: Path) -> None:
    """Write the files that the cases name."""
    for name, text in LIBSVM.items():
        (folder / name).write_text(text)
    (folder / "binary").write_bytes(bytes(range(256)) * 4)
    (folder / "cut.xz").write_bytes(lzma.compress(LIBSVM["good"].encode() * 50)[:-20])
    two = bz2.compress(LIBSVM["good"].encode()), lzma.compress(LIBSVM["good"].encode())
    for name, stream in zip(("half.bz2", "half.xz"), two, strict=True):
        (folder / name).write_bytes(stream + stream[:30] + bytes(8) + stream[38:])
    (folder / "deep.toml").write_text(f"title = {'[' * 10**5}")
    (folder / "deep-tables.toml").write_text(f"[{'.'.join('a' * 10**4)}]\nx = 1\n")
    (folder / "digits.toml").write_text(f"[run]\nrounds = {'9' * 5000}\n")
    (folder / "syntax.py").write_text("x = 1\ny = = 2\n")
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


def run(*settings: str) -> list[str]:
    """``run good.toml`` with settings."""
    return [
        "run",
        "{d}/good.toml",
        "--out",
        "{d}/log.h5",
        *(word for s in settings for word in ("--set", s)),
    ]


def out(path: str, *flags: str) -> list[str]:
    """The good experiment with its log at another path."""
    return ["run", "{d}/good.toml", "--out", path, *flags]


def data(name: str) -> list[str]:
    """The good experiment on another data file."""
    return run(f"problem.data={{d}}/{name}")


QUADRATIC = f"{{ name = 'quadratic', dimension = 9{'0' * 18} }}"

CASES: list[tuple[str, list[str], list[str]]] = [
    # LibSVM files
    ("no colon", data("no-colon"), ["no-colon:2"]),
    ("index 0", data("index-0"), ["index-0:2"]),
    ("negative index", data("negative-index"), ["negative-index:2"]),
    ("descending indices", data("descending"), ["descending:2"]),
    ("duplicate index", data("duplicate"), ["duplicate:2"]),
    ("value not a number", data("word"), ["word:2"]),
    ("nan", data("nan"), ["nan:2"]),
    ("infinity", data("infinite"), ["infinite:2"]),
    ("label not a number", data("label"), ["label:2"]),
    ("one label", data("one-label"), ["one-label", "two"]),
    ("three labels", data("three-labels"), ["three-labels", "two"]),
    ("empty file", data("empty"), ["empty"]),
    ("binary file", data("binary"), ["binary:"]),
    ("truncated xz", data("cut.xz"), ["cut.xz"]),
    ("second bz2 stream damaged", data("half.bz2"), ["half.bz2", "the stream that begins at"]),
    ("second xz stream damaged", data("half.xz"), ["half.xz", "the stream that begins at"]),
    ("gz that is none", data("not-really.gz"), ["not-really.gz"]),
    ("data is a folder", data("a-folder"), ["a-folder"]),
    ("unknown data set", run("problem.data=no-such-set"), ["no-such-set", "MPISIM_DATA"]),
    # TOML
    ("broken TOML", ["run", "{d}/broken.toml"], ["broken.toml", "line 1"]),
    ("not UTF-8", ["run", "{d}/latin.toml"], ["latin.toml"]),
    ("deep lists", ["run", "{d}/deep.toml"], ["deep.toml", "nested too deeply"]),
    ("deep tables", ["run", "{d}/deep-tables.toml"], ["a.a.a", "nested too deeply"]),
    ("deep tables of a sweep", ["sweep", "{d}/deep-tables.toml"], ["nested too deeply"]),
    ("deep value", run("run.columns=" + "[" * 10**4), ["run.columns", "nested too deeply"]),
    ("not so deep value", run("run.columns=" + "[" * 50 + "]" * 50), ["run.columns", "deeply"]),
    ("deep key", run("a." * 10**4 + "b=1"), ["a.a.a", "nested too deeply"]),
    ("5000 digits", ["run", "{d}/digits.toml"], ["digits.toml: line 2", "too many digits", "2^63"]),
    ("5000 digits of a key", run(f"compressor.k={'9' * 5000}"), ["--set compressor.k", "digits"]),
    *(
        (f"300 digits of {key}", run(f"{key}={'9' * 300}"), [f"{key}: an integer of 997 bits"])
        for key in ("run.rounds", "compressor.k", "method.stepsize", "problem.l2")
    ),
    ("NUL in the title", run(r'title="a\u0000b"'), ["title", "without NUL"]),
    ("bytes that are not UTF-8", run("title=\udcff"), ["title", "UTF-8"]),
    ("doubled column", run('run.columns=["pi", "pi"]'), ["run.columns", "different"]),
    ("too large for memory", run("problem=" + QUADRATIC), ["problem.dimension", "memory", "GB"]),
    (
        "too many workers for memory",
        run("problem=" + QUADRATIC.replace("dimension = 9", "workers = 9")),
        ["problem.workers", "memory"],
    ),
    ("no such file", ["run", "{d}/nothing.toml"], ["nothing.toml", "No such file"]),
    ("a folder for a file", ["run", "{d}"], ["cannot be read"]),
    ("unknown table", run("nonsense.name=1"), ["nonsense", "problem, method, compressor"]),
    ("unknown key", run("run.round=3"), ["run.round", "rounds"]),
    ("wrong type", run("run.rounds=many"), ["run.rounds", "an integer"]),
    ("a float for an integer", run("run.rounds=1.5"), ["run.rounds", "an integer"]),
    ("a boolean for an integer", run("run.seed=true"), ["run.seed", "an integer"]),
    ("negative rounds", run("run.rounds=-1"), ["run.rounds", ">= 0"]),
    ("log_every 0", run("run.log_every=0"), ["run.log_every", ">= 1"]),
    ("unknown wire type", run("run.wire=float16"), ["run.wire", "'float32' or 'float64'"]),
    ("unknown layout", run("run.layout=ring"), ["run.layout", "'shared' or 'dedicated'"]),
    ("unknown problem", run("problem.name=lasso"), ["problem.name", "'lasso'", "logistic"]),
    ("unknown method", run("method.name=sgd"), ["method.name", "'sgd'", "marina"]),
    ("unknown compressor", run("compressor.name=zip"), ["compressor.name", "'zip'", "randk"]),
    ("key of another method", run("method.alpha=0.5"), ["method.alpha", "'dcgd'"]),
    ("unknown split", run("problem.split=random"), ["problem.split", "contiguous"]),
    ("negative step", run("method.stepsize=-1"), ["method.stepsize", "> 0"]),
    (
        "step of no theorem",
        run("method.name=ef", "method.stepsize=theory"),
        ["method.stepsize", "no theorem"],
    ),
    ("p above 1", run("method.name=marina", "method.p=2"), ["method.p", "(0, 1]"]),
    (
        "biased in theory",
        run("method.name=diana", "compressor={ name = 'topk', k = 2 }"),
        ["biased"],
    ),
    ("k above d", run("compressor.k=4"), ["compressor.k", "4", "3"]),
    ("k = 0", run("compressor.k=0"), ["compressor.k", "0", "1"]),
    ("k missing", run("compressor={ name = 'topk' }"), ["compressor.k: missing"]),
    ("more workers than rows", run("problem.workers=13"), ["13", "12"]),
    ("no workers", run("problem.workers=0"), ["problem.workers"]),
    ("too many workers", run("problem.workers=9223372036854775807"), ["problem.workers", "2^31"]),
    (
        "infinite warm-up",
        run("method={ name = '1bit-adam', stepsize = 0.1, warmup = inf }"),
        ["method.warmup", "inf"],
    ),
    (
        "reference of a non-convex problem",
        run("problem.name=nonconvex-loss", "run.reference=true"),
        ["nonconvex-loss"],
    ),
    ("compressor for gd", run("method.name=gd"), ["compressor.name", "gd"]),
    # flags and outputs
    ("unknown flag", ["run", "--rounds", "3"], ["--rounds"]),
    ("--set without value", ["run", "--set", "run.rounds"], ["run.rounds", "TABLE.KEY=VALUE"]),
    ("unknown command", ["walk"], ["walk"]),
    ("unknown plugin", ["run", "{d}/good.toml", "--plugin", "no_such_module"], ["no_such_module"]),
    *(
        (f"plugin {name!r}", ["run", "{d}/good.toml", "--plugin", name], [said])
        for name, said in {
            "": "plugin: [''] is not allowed",
            ".": "neither the name of a module nor",
            "./mine": "neither the name of a module nor",
            ".mine": "neither the name of a module nor",
            "{d}/empty.py": "empty.py: the file is empty",
            "{d}/syntax.py": "syntax.py:2: invalid syntax",
        }.items()
    ),
    ("log exists", out("{d}/exists.h5"), ["exists.h5", "--force"]),
    ("no folder for the log", out("{d}/good/log.h5"), ["log.h5"]),
    ("nothing but a file to resume", out("{d}/exists.h5", "--resume"), ["exists.h5: not a log"]),
    ("no name for the log", out("", "--force"), ["is a folder"]),
    ("this folder for the log", out(".", "--force"), ["is a folder"]),
    ("the folder above for the log", out("..", "--force"), ["..: is a folder"]),
    ("the root for the log", out("/", "--force"), ["/: is a folder"]),
    ("a folder for the log", out("{d}/a-folder", "--force"), ["a-folder: is a folder"]),
    ("a pipe for the log", out("{d}/a-pipe", "--force"), ["a-pipe: is a device, a pipe or"]),
    ("a device for the log", out("/dev/null", "--force"), ["/dev/null: is a device"]),
    ("too long a name for the log", out("{d}/" + 300 * "x", "--force"), ["File name too long"]),
    ("too long a name beside the log", out("{d}/" + 250 * "x"), ["File name too long"]),
    ("not UTF-8 for the log", out("{d}/\udcff.h5"), ["udcff.h5", "UTF-8"]),
    ("a folder for the checkpoint", out("{d}/taken.h5"), ["taken.h5.ckpt: is a folder"]),
    ("show no log", ["show", "{d}/exists.h5"], ["exists.h5"]),
    ("show a pipe", ["show", "{d}/pipe.h5"], ["pipe.h5", "not a regular file"]),
    ("verify a pipe", ["verify", "{d}/pipe.h5"], ["pipe.h5", "not a regular file"]),
    ("show no file", ["show", "{d}/nothing.h5"], ["nothing.h5"]),
    ("plot no log", ["plot", "{d}/exists.h5", "-o", "{d}/x.png"], ["exists.h5"]),
]
