"""The journal: what is read of it, whatever was done to the file."""

import hashlib
import itertools
import json
import struct
import zlib

import numpy as np
import pytest

from mpisim.runs.log import journal
from mpisim.runs.log.journal import Journal
from tests.runs.log.support import SCHEMA, rows


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.h5"


def write(log, *ends):
    """A journal with a record up to each of ``ends``; the sizes of the file after each."""
    written = Journal(journal.path_for(log), SCHEMA, rows(0, ends[0]))
    sizes = [written.path.stat().st_size]
    for first, last in itertools.pairwise(ends):
        written.append(rows(first, last))
        sizes.append(written.path.stat().st_size)
    assert np.array_equal(np.concatenate([*written.batches()]), rows(0, ends[-1]))
    written.close(remove=False)
    return sizes


def test_the_format_is_as_it_is_described(log):
    """Read with nothing but the standard library, NumPy and the module's docstring."""
    write(log, 3, 5)
    content, records = journal.path_for(log).read_bytes(), []
    while content:
        length, checksum = struct.unpack("<II", content[:8])
        record, content = content[8 : 8 + length], content[8 + length :]
        assert len(record) == length and zlib.crc32(record) == checksum
        records.append(record)
    header = json.loads(records[0])
    kind = np.dtype([tuple(column) for column in header["columns"]])
    assert header["journal"] == 1 and kind.names == tuple(sorted(name for name, *_ in SCHEMA))
    assert np.array_equal(np.frombuffer(b"".join(records[1:]), kind), rows(0, 5))


@pytest.mark.parametrize("tail", [b"", b"\0" * 5000, b"\xff" * 5000])
def test_a_torn_tail_is_cut_at_the_last_good_record(tail, log):
    """At each length, with nothing behind it, or space that was never filled, or rubbish."""
    ends = (2, 3, 7, 20)
    sizes, path = write(log, *ends), journal.path_for(log)
    content = path.read_bytes()
    for size in range(0, len(content) + 1, 7 if tail else 1):
        path.write_bytes(content[:size] + tail)
        found = journal.read(log, SCHEMA)
        there = max([0, *(end for end, at in zip(ends, sizes, strict=True) if at <= size)])
        if found is None:
            assert there == 0
        else:
            assert np.array_equal(found, rows(0, there))


@pytest.mark.parametrize("portions", [(0,), (0, 1), (1, 5, 6, 9), (9,), (0, 9)])
def test_the_digest_is_that_of_all_rows_in_whatever_portions_they_came(portions, log):
    written = Journal(journal.path_for(log), SCHEMA, rows(0, portions[0]))
    for first, last in itertools.pairwise(portions):
        written.append(rows(first, last))
    end = portions[-1]
    kind = rows(0, 0).dtype

    def expected(count):
        return hashlib.sha256(repr(kind.descr).encode() + rows(0, count).tobytes()).hexdigest()

    assert written.digest() == journal.digest(rows(0, end)) == expected(end)
    assert written.before(end) == (end, expected(end))
    if end:  # the round of the last row is next
        assert written.before(end - 1) == (end - 1, expected(end - 1))
    written.close(remove=True)
    assert not written.path.exists()


def test_the_journal_of_another_run_is_not_removed(log):
    one = Journal(journal.path_for(log), SCHEMA, rows(0, 1))
    two = Journal(journal.path_for(log), SCHEMA, rows(0, 2))
    assert two.is_here() and not one.is_here()
    one.close(remove=True)
    assert two.is_here() and len(journal.read(log, SCHEMA)) == 2
    two.close(remove=True)
