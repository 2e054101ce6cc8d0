"""Files with arbitrary changes are read, or end in one line; never in another exception."""

import shutil
import tomllib

import h5py
import numpy as np
import pytest
import tomli_w
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mpisim.analysis.costs import Costs, Target
from mpisim.analysis.show import show_text
from mpisim.analysis.tune import best
from mpisim.analysis.verify import examine
from mpisim.cli import main
from mpisim.comm.communicators import OneProcess
from mpisim.compressors.base import COMPRESSORS
from mpisim.core.errors import InputError, MpisimError
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from mpisim.runs import checkpoint
from mpisim.runs.experiment import parse, read
from mpisim.runs.log.journal import digest
from mpisim.runs.log.reader import damaged, read_all
from mpisim.runs.log.schema import columns
from mpisim.runs.resume import Resumption
from tests.helpers import run_tables, set_up, table
from tests.malformed import GOOD, LIBSVM

often = settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
seldom = settings(often, max_examples=8)  # each starts processes that read the log
TOKENS = [b"\0", b"\xff", b" ", b"\n", b":", b"1", b"9" * 25, b"-", b"nan", b"inf", b"1e999", b"#"]
TOKENS += [b"\\u0000", b"\x1b[31m", b"9" * 400, b"9" * 5000, b"[" * 40, b"{a=" * 400]
TOKENS += [b"\t", b"\r", b"=", b"[", b"]", b'"', b"{", b"}", b".", b",", b"true", b"0x1", b"1_0"]
pieces = st.one_of(st.sampled_from(TOKENS), st.binary(max_size=3))
edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 8), pieces), min_size=1, max_size=4
)


def edited(content: bytes, changes) -> bytes:
    """Each change replaces some bytes at a place by a piece."""
    for share, length, piece in changes:
        at = int(share * len(content))
        content = content[:at] + piece + content[at + length :]
    return content


def reached(path):
    """What `mpisim show` prints."""
    return str(Costs(read_all([path]), [Target("grad_norm_sq", 1e-3)]))


def accept_or_one_line(function, *arguments):
    """What it gives, or None for an error of one line."""
    try:
        return function(*arguments)
    except MpisimError as error:
        assert str(error) and "\n" not in str(error)
        return None


@often
@given(changes=edits)
def test_toml_text(changes, tmp_path):
    file = tmp_path / "x.toml"
    file.write_bytes(edited(GOOD.encode(), changes))
    accept_or_one_line(read, file, [])


names = st.sampled_from([*COMPRESSORS, *METHODS, *PROBLEMS])
numbers = st.one_of(
    st.sampled_from([0, 1, 2, 3, 7, -1, 2**31, 2**62, 2**63 - 1, 2**63, -(10**300)]),
    st.sampled_from([0.0, 0.5, 1.0, 1e-300, float("nan"), float("inf"), -float("inf")]),
)
words = ["", "theory", "x", "a\nb", "a\0b", "\x1b[31m", "shuffled", "spread", "float32", "both"]
words += ["zero", "inf", "e1"]
inner = st.fixed_dictionaries({}, optional={"name": names, "s": numbers, "theory": numbers})
several = st.lists(numbers, max_size=3)
values = st.one_of(numbers, names, st.booleans(), st.sampled_from(words), several, inner)
KEYS = {
    "problem": "name data workers split remainder bias scale l2 lambda dimension noise",
    "method": "name stepsize p alpha batch participants beta1 nu warmup start schedule optimizer",
    "compressor": "name k s p norm groups blocks beta tau inner outer rank codec subsets",
    "run": "rounds seed wire dtype log_every checkpoint_seconds layout reference columns",
}
places = st.sampled_from([(t, k) for t, keys in KEYS.items() for k in keys.split()])
replaced = st.lists(st.tuples(places, values), min_size=1, max_size=2)
QUADRATIC = {"name": "quadratic", "workers": 3, "dimension": 9, "noise": 0.5}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers that are too large
@often
@given(changes=replaced, quadratic=st.booleans())
def test_values_of_keys(changes, quadratic, tmp_path):
    (tmp_path / "good").write_text(LIBSVM["good"])
    tables = tomllib.loads(GOOD.replace("{d}", str(tmp_path)))
    if quadratic:
        tables["problem"] = dict(QUADRATIC)
    for (name, key), value in changes:
        assume((key, value) not in [("dimension", 2**31)])  # it may fit
        tables[name][key] = value
    text = tomli_w.dumps(tables)
    accept_or_one_line(lambda: set_up(tomllib.loads(text)))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A finished log of 20 rounds, with its checkpoints."""
    path = tmp_path_factory.mktemp("logs") / "log.h5"
    for rounds in (10, 20):
        tables = table({"name": "marina", "stepsize": 0.1}, {"name": "randk", "k": 4})
        run_tables(tables | {"run": {"rounds": rounds}}, path, resume=rounds == 20)
    return path


def use(path, log):
    """All that reads a log; ``log``: the one that it was."""
    accept_or_one_line(show_text, path)
    assert main(["verify", str(path)]) in (0, 1, 2)
    result, _ = checkpoint.load(checkpoint.path_for(log), {}, accept=True)
    run = read_all([log])[0].config
    resumption = Resumption(parse(run), parse(run).run, {}, columns(False))
    rows = accept_or_one_line(lambda: resumption._read(path)[2])
    if rows is not None and digest(rows[: result.log.rows]) == result.log.digest:
        with h5py.File(log) as file:
            for name in file["rounds"]:
                assert rows[name][:20].tobytes() == file["rounds"][name][:20].tobytes()


@seldom
@given(share=st.floats(0, 1, exclude_max=True))
def test_logs_that_are_cut_short(share, log, tmp_path):
    content = log.read_bytes()
    (tmp_path / "x.h5").write_bytes(content[: int(share * len(content))])
    use(tmp_path / "x.h5", log)


flips = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1)


@seldom
@given(changes=flips)
def test_logs_whose_bytes_are_changed(changes, log, tmp_path):
    """Also where HDF5 crashes, which it does on some in a thousand."""
    content = bytearray(log.read_bytes())
    places = np.flatnonzero(np.frombuffer(content, np.uint8))  # most bytes are zeros
    for share, byte in changes:
        content[places[int(share * len(places))]] ^= byte
    path = tmp_path / "x.h5"
    path.write_bytes(content)
    for use_of in (show_text, reached, lambda path: best([path], "mean")):
        accept_or_one_line(use_of, path)


@pytest.mark.parametrize(
    ("config", "why"),
    [(None, "it has no attribute config"), ("[run]\ncycles = 3", "config has no problem.name")],
)
def test_a_log_that_does_not_tell_its_experiment(config, why, log, tmp_path):
    path = shutil.copy(log, tmp_path / "x.h5")
    with h5py.File(path, "r+") as file:
        del file.attrs["config"]
        file.attrs.update({"config": config} if config else {})
    for reader in (lambda path: best([path], "mean"), reached):
        with pytest.raises(InputError, match=rf"x\.h5: the log is damaged: {why}"):
            reader(path)


def test_a_condition_that_is_no_table(log, tmp_path):
    path = shutil.copy(log, tmp_path / "x.h5")
    with h5py.File(path, "r+") as file:
        file.attrs["config"] = file.attrs["config"].replace("[run]", "[run]\nstop = 3", 1)
    with pytest.raises(InputError, match="damaged: it holds something else than mpisim writes"):
        list(examine(*read_all([path]), False, False, OneProcess()))


def test_a_key_is_no_explanation(tmp_path):
    why = r"x\.h5: the log is damaged: stop is missing"
    with pytest.raises(InputError, match=why), damaged(tmp_path / "x.h5"):
        raise KeyError("stop")


def test_a_column_that_claims_to_be_larger_than_the_file(log, tmp_path):
    path = shutil.copy(log, tmp_path / "x.h5")
    with h5py.File(path, "r+") as file:
        del file["rounds/loss"]  # nothing is written: zeros that HDF5 would make up
        file["rounds"].create_dataset("loss", (1 << 40,), float, chunks=(1024,))
    with pytest.raises(InputError, match=r"damaged: .* is larger than the file"):
        show_text(path)


strange = st.one_of(
    numbers.filter(lambda n: isinstance(n, float) or abs(n) < 2**62),
    st.sampled_from(["", "x", "\x1b[31m\x9b", b"\xff\xfe", "running", "failed"]),
    st.sampled_from(["[run]", "[run]\nlog_every = 0"]),
    st.sampled_from([np.zeros(0), np.zeros((2, 3)), np.array([b"a"]), np.zeros(21), 1j]),
)


elsewhere = [h5py.SoftLink("/rounds/loss"), h5py.SoftLink("/"), h5py.SoftLink("/nowhere")]
elsewhere += [h5py.ExternalLink("x.h5", "/rounds/loss"), h5py.ExternalLink("/dev/zero", "/")]


def _has(file, name):
    """False below a group that has become a link to itself."""
    try:
        return name in file
    except RuntimeError:
        return False


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@seldom
@given(data=st.data())
def test_logs_with_strange_content(data, log, tmp_path, capfd):
    path = shutil.copy(log, tmp_path / "x.h5")
    with h5py.File(path, "r+") as file:
        items = ["final/x", "rounds", "workers"]
        items += [f"{group}/{name}" for group in items[1:] for name in sorted(file[group])]
        places = st.sampled_from([*sorted(file.attrs), *items])
        for name in data.draw(st.lists(places, min_size=1, max_size=2)):
            value = data.draw(strange)
            if name not in items:
                file.attrs[name] = value
            elif _has(file, name):
                del file[name]
                if (data.draw(st.booleans()) and name.split("/")[0] in file) or "/" not in name:
                    file[name] = data.draw(st.sampled_from([value, *elsewhere]))
    use(path, log)
    out, err = capfd.readouterr()
    assert not {"\x1b", "\x9b"} & {*out, *err}
