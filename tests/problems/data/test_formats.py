"""CSV, .npz, parquet and arrays in memory have the rows of the LibSVM file; and test sets."""

import bz2
import gzip
import io
import lzma
import tomllib

import numpy as np
import pytest
from scipy import sparse

import mpisim
from mpisim.core.errors import InputError
from mpisim.problems import PROBLEMS
from mpisim.problems.data import formats
from mpisim.problems.data.content import read_content
from tests.helpers import run_tables
from tests.problems.data.conftest import random_dense, scaled, to_text

X, Y = random_dense(30, 6)
COLUMNS = np.column_stack([Y, X])
NAMES = "label,a,b,c,d,e,f"


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def csv(table, header=""):
    out = io.StringIO()
    np.savetxt(out, table, delimiter=",", header=header, comments="", fmt="%.17g")
    return out.getvalue().encode()


def parquet(table, names):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    out = io.BytesIO()
    write_table(arrow.table(dict(zip(names.split(","), table.T, strict=True))), out)
    return out.getvalue()


def parts(x):
    rows = sparse.csr_array(x)
    return {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": x.shape}


LAST = np.roll(COLUMNS, -1, axis=1)
MARK = b"\xef\xbb\xbf"  # with which spreadsheets begin a file
FILES = {
    "plain.csv": (lambda: csv(COLUMNS), None),
    "named.csv.xz": (lambda: csv(COLUMNS, NAMES), None),
    "last.CSV": (lambda: csv(LAST, NAMES.split(",", 1)[1] + ", label"), "label"),
    "seventh.csv": (lambda: csv(LAST), 7),
    "marked.csv": (lambda: MARK + csv(COLUMNS), None),
    "marked-names.csv": (lambda: MARK + csv(COLUMNS, NAMES), "label"),
    "numbered.csv": (lambda: csv(COLUMNS, "0,1,2,3,4,5,6"), "0"),  # as pandas names columns
    "dense.npz": (lambda: npz(x=X, y=Y), None),
    "capital": (lambda: npz(X=X.astype(np.float64), y=Y.astype(int)), None),
    "sparse": (lambda: npz(y=Y, **parts(X)), None),
    "frame": (lambda: parquet(COLUMNS, NAMES), None),
    "frame.parquet": (lambda: parquet(LAST, NAMES.split(",", 1)[1] + ",label"), "label"),
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_rows_as_libsvm(name):
    make, label = FILES[name]
    got = formats.parse(make(), name, label)
    expected = formats.parse(to_text(X, Y).encode(), "set")
    assert got.rows == expected.rows and got.features == expected.features == 6
    for part in ("data", "indices", "indptr", "labels"):
        one, other = getattr(got, part), getattr(expected, part)
        assert one.dtype == other.dtype and np.array_equal(one, other)


@pytest.mark.parametrize("zero_based", [False, True])
def test_to_libsvm_keeps_every_bit_and_d(zero_based, tmp_path):
    x = np.array([[0.1 + 0.2, 1e-300, 0], [-1 / 3, 2e22, 0], [0, 0, 0]])
    y = np.array([0.1 + 0.7, 1, -2])
    source, out = tmp_path / "rows.csv", tmp_path / "out"
    text = "".join(f"{label} 0:{a} 1:{b} 2:{c}\n" for label, (a, b, c) in zip(y, x, strict=True))
    source.write_bytes(text.encode() if zero_based else csv(np.column_stack([y, x])))
    assert formats.to_libsvm(source, out, zero_based=zero_based) == (3, 3)
    table = formats.parse(out.read_bytes(), "out")
    rows = sparse.csr_array((table.data, table.indices, table.indptr), (3, table.features))
    assert np.array_equal(rows.toarray(), x) and np.array_equal(table.labels, y)


@pytest.mark.parametrize("packing", [gzip, bz2, lzma])
def test_what_expands_too_far_is_one_line(packing, tmp_path, monkeypatch):
    """A file may have 50 times its size, and MPISIM_READ_GIGABYTES in any case."""
    path, content = tmp_path / "bomb", b"+1 1:1" + b" " * 1_500_000 + b"\n-1 1:2\n"
    path.write_bytes(packing.compress(content))
    assert read_content(path) == content
    monkeypatch.setenv("MPISIM_READ_GIGABYTES", "0.001")
    line = r"bomb: [\d,]+ bytes that expand to more than .*GIGABYTES"
    with pytest.raises(InputError, match=line):
        read_content(path)
    path.write_bytes(packing.compress(np.random.default_rng(1).bytes(1_500_000)))
    assert len(read_content(path)) == 1_500_000


def test_arrays_that_expand_too_far_are_one_line(monkeypatch):
    out = io.BytesIO()
    np.savez_compressed(out, x=np.zeros((1000, 200)), y=np.zeros(1000))
    assert formats.parse(out.getvalue(), "a.npz").rows == 1000
    monkeypatch.setenv("MPISIM_READ_GIGABYTES", "0.001")
    with pytest.raises(InputError, match=r"a.npz: .* expand to more than"):
        formats.parse(out.getvalue(), "a.npz")


FAR = "far: the largest index is {},000,000,000: three vectors .*take 48 GB, and"
USELESS = [
    ("logistic", "+1 1:1\n-1 2000000000:1\n", FAR.format(2)),
    ("multinomial-logistic", "+1 1:1\n-1 1000000000:1\n", FAR.format(1)),
    ("multinomial-logistic", "2\n2\n", "far: 1 distinct label; allowed: two or more classes"),
    ("least-squares", "2\n2\n", "L is 0, so no theorem gives a step; are all features 0?"),
]


STEP = {"name": "gd", "stepsize": "theory"}


@pytest.mark.parametrize(("name", "text", "line"), USELESS)
def test_data_that_no_run_can_use_is_one_line(name, text, line, tmp_path, monkeypatch):
    """An index beyond memory, one class alone, or no features."""
    (tmp_path / "far").write_text(text)
    monkeypatch.setattr("mpisim.problems.glm.available_memory", lambda: 40e9)
    problem = {"name": name, "data": str(tmp_path / "far"), "workers": 2}
    with pytest.raises(InputError, match=line):
        mpisim.run({"problem": problem, "method": STEP, "run": {"rounds": 1}})


def test_arrays_are_written_once_under_their_digest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = formats.save_arrays(X, Y)
    path = tmp_path / name
    first = path.stat()
    for x in (sparse.csr_matrix(X), sparse.coo_array(X), X.tolist()):
        assert formats.save_arrays(x, Y.astype(int).tolist()) == name
    assert path.stat() == first
    assert formats.save_arrays(X, -Y) != name
    table = formats.parse(path.read_bytes(), name)
    assert np.array_equal(table.data, X[X != 0]) and np.array_equal(table.labels, Y)


@pytest.mark.parametrize(("key", "test"), [("data", None), ("test", (X, Y))])
def test_arrays_beside_a_file_are_one_line(key, test, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = {"problem": {"name": "logistic", key: "sample"}}
    line = f"^problem.{key}: 'sample' is not allowed; it must be absent: arrays are in its place"
    with pytest.raises(InputError, match=line):
        mpisim.Experiment.from_arrays(X, Y, keys, test)


@pytest.mark.parametrize("first", ["0.0,1,2", "1,2,3", "0,1,3"])
def test_a_first_line_of_numbers_is_a_sample(first):
    assert formats.parse(f"{first}\n4,5,6\n".encode(), "a.csv").rows == 2


def test_the_index_of_pandas_is_no_column():
    pytest.importorskip("pyarrow")
    frame = pytest.importorskip("pandas").DataFrame(COLUMNS, columns=list("yabcdef"))
    order = np.roll(np.arange(len(Y)), 1)  # no range, which is not stored as a column
    table = formats.parse(frame.iloc[order].to_parquet(), "a")
    assert np.array_equal(table.labels, Y[order]) and table.features == 6


def damaged_npz(header, at, new):
    """With the bytes ``new`` so far behind the first header of a kind."""
    out = io.BytesIO()
    np.savez_compressed(out, x=X, y=Y)
    content = out.getvalue()
    start = content.index(header) + at
    return content[:start] + new + content[start + len(new) :]


ROWS, ENTRY = b"PK\x03\x04", b"PK\x01\x02"  # of an array, and of the list of arrays
WIDE = sparse.coo_array(([1.0], ([0], [2**31 - 1])), shape=(1, 2**31))
TEXTS, DATES = np.full((2, 2), "1.5"), np.zeros((2, 2), "datetime64[s]")
WRONG = [
    (lambda: b"label,a\n\n\n1,2\n1,x\n", "a.csv", None, r"^a\.csv:5: could not convert"),
    (lambda: b"a,b,label\n1,2\n", "a.csv", "label", r"^a\.csv:2: 2 cells; allowed: 3"),
    (lambda: b",a,b\n0,1,2\n", "a.csv", None, r"^a\.csv:1: a cell .*to_csv\(index=False\)"),
    (lambda: b"1,0.2,\n2,0.3,4\n", "a.csv", None, r"^a\.csv:1: a cell is missing; allowed:"),
    (lambda: b"\n1,NA,?\n2,0.3,4\n", "a.csv", None, r"^a\.csv:2: a cell is missing; allowed:"),
    (lambda: b"0,1\n2,0.3\n", "a.csv", None, r"^a\.csv:1: 0,1 may be names or a sample"),
    (lambda: npz(y=Y[:1], **parts(WIDE)), "a", None, r"^a: x \(1, 2147483648\) .*to 2147483646"),
    (lambda: csv(COLUMNS, NAMES), "a.csv", "nosuch", r"^problem\.label: 'nosuch' .*label, a, b"),
    (lambda: csv(COLUMNS), "a.csv", "y", r"^problem\.label: 'y' .*no names"),
    (lambda: csv(COLUMNS), "a.csv", 8, r"^problem\.label: 8 .*from 1 to 7"),
    (lambda: csv(COLUMNS[:, :1]), "a.csv", None, r"^a\.csv: x \(30, 0\)"),
    (lambda: csv(COLUMNS * np.nan), "a.csv", None, r"^a\.csv: a number is missing"),
    (lambda: to_text(X, Y).encode(), "set", "y", r"^problem\.label: 'y' .*neither CSV"),
    (lambda: npz(x=X), "a", None, r"^a: has arrays x; allowed: y, and x"),
    (lambda: npz(x=X, y=Y[1:]), "a", None, r"^a: x \(30, 6\) and y \(29,\)"),
    (lambda: npz(x=X, y=Y, z=np.array([{}])), "a", None, r"^a: Object arrays"),
    (lambda: npz(x=X, y=Y)[:200], "a", None, r"^a: .*; allowed: an \.npz file"),
    (lambda: damaged_npz(ROWS, 60, b"\xff" * 20), "a", None, r"^a: Error -3 .*; allowed: an \.npz"),
    (lambda: damaged_npz(ENTRY, 8, b"\1"), "a", None, r"^a: .* encrypted.*; allowed: an \.npz"),
    (lambda: npz(y=Y, **parts(X) | {"indices": [9] * 99}), "a", None, "^a: .*CSR rows"),
    (lambda: parquet(TEXTS, "y,a"), "a", None, "^a: column y is string; allowed: parquet"),
    (lambda: parquet(DATES, "y,a"), "a", None, r"^a: column y is timestamp.*; allowed: parquet"),
    (lambda: parquet(COLUMNS, NAMES)[:99] + b"PAR1", "a", None, "^a: .*; allowed: parquet"),
]


@pytest.mark.parametrize(("make", "name", "label", "line"), WRONG)
def test_what_is_not_allowed(make, name, label, line):
    with pytest.raises(InputError, match=line):
        formats.parse(make(), name, label)


TABLES = {"method": {"name": "gd", "stepsize": 0.5}, "run": {"rounds": 3, "seed": 2}}
T, U = random_dense(17, 8, seed=3)  # more features than X has


@pytest.mark.parametrize("scale", ["none", "row-max-abs", "feature-max-abs"])
@pytest.mark.parametrize("name", ["logistic", "least-squares"])
def test_columns_of_a_test_set(name, scale, cache, tmp_path, monkeypatch):
    """By the book."""
    monkeypatch.chdir(tmp_path)
    problem = {"name": name, "workers": 5, "bias": True, "scale": scale}
    keys = TABLES | {"problem": problem}
    experiment = mpisim.Experiment.from_arrays(X, Y, keys, test=(sparse.csr_array(T), U))
    assert experiment == mpisim.Experiment.from_dict(tomllib.loads(experiment.to_toml()))
    end = mpisim.run(experiment)
    assert end.x.shape == (9,) and not end.x[7:].any()  # features of the test set alone
    train = np.pad(X, ((0, 0), (0, 2)))
    a, b = (np.column_stack([np.ones(len(v)), scaled(v, scale, train)]) for v in (train, T))
    z, sign, shares = b @ end.x, np.where(U == 2, 1, -1), [np.nan, np.nan]
    loss, slope = (z - U) ** 2 / 2, z - U
    if name == "logistic":
        loss, slope = np.logaddexp(0, -sign * z), -sign / (1 + np.exp(sign * z))
        rights = (np.where(rows @ end.x >= 0, 2, 1) == y for rows, y in ((a, Y), (b, U)))
        shares = [np.mean(right) for right in rights]
    gradient = b.T @ slope / len(U)
    wanted = {"train_accuracy": shares[0], "test_accuracy": shares[1]}
    wanted |= {"test_loss": loss.mean(), "test_grad_norm_sq": gradient @ gradient}
    assert {key: end.rows[key][-1] for key in wanted} == pytest.approx(wanted, 1e-12, nan_ok=True)


def test_a_test_set_changes_nothing_else(cache, here):
    (here / "train").write_text(to_text(X, Y))
    (here / "test").write_text(to_text(X[:3], Y[:3]))  # fewer rows than workers
    problem = {"name": "logistic", "data": "train", "workers": 5}
    plain = run_tables(TABLES | {"problem": problem})
    tables = TABLES | {"problem": problem | {"test": "test"}}
    tested = run_tables(tables)
    assert all(tested.row[key] == value for key, value in plain.row.items() if "time" not in key)
    assert tested.row["test_loss"] > 0 and "test_loss" not in plain.row
    alone = PROBLEMS["logistic"](data="train", test_="test").loaded(5, 4, 1, 0, np.dtype(float))
    assert "tested on test sha256:" in alone.identity
    for label, sign in ((1, -1), (2, 1)):  # one class alone, which the training set's labels name
        (here / "test").write_text(f"{label} 1:1\n")
        end = run_tables(tables)
        assert end.row["test_loss"] == pytest.approx(np.logaddexp(0, -sign * end.x[0]), rel=1e-12)
    (here / "test").write_text("2 1:1\n3 2:1\n")
    with pytest.raises(InputError, match=r"test: labels 3 are not among those of .*train"):
        run_tables(tables)
