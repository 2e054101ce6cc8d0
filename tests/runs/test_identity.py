"""A run goes on, and a sweep keeps a log, only with the code that computed what is there."""

import itertools
import json
import platform
import sys

import h5py
import pytest

from mpisim.compressors.sparse import RandK
from mpisim.core import imports
from mpisim.core.errors import InputError
from mpisim.runs import identity
from mpisim.runs.experiment import parse
from tests.helpers import run_tables, table
from tests.resumes import differences

PLUGIN = """
import numpy as np
from mpisim import Compressor, compressor
from mpisim.compressors.base import Identity

FACTOR = {factor}

@compressor("{name}")
class Mine(Identity):
    def compress(self, v, draw):
        return super().compress(FACTOR * v, draw)
"""
NUMBERS = itertools.count()


class Plugin:
    """A plugin in a file, which can be edited between runs as between processes."""

    def __init__(self, folder):
        self.path = folder / f"edited{next(NUMBERS)}.py"
        self.edit(1.0)

    def edit(self, factor):
        name = self.path.stem
        self.path.write_text(PLUGIN.format(factor=factor, name=name))
        sys.modules.pop(name, None)
        imports.digest.cache_clear()

    def table(self, rounds):
        tables = table({"name": "gd", "stepsize": 0.1}, rounds=rounds)
        tables["method"] = {"name": "dcgd", "stepsize": 0.1}
        return tables | {"plugin": str(self.path), "compressor": {"name": self.path.stem}}


@pytest.fixture
def plugin(tmp_path):
    return Plugin(tmp_path)


def test_an_edited_plugin_does_not_go_on(plugin, tmp_path):
    log, whole = tmp_path / "log.h5", tmp_path / "whole.h5"
    run_tables(plugin.table(6), whole)
    run_tables(plugin.table(3), log)
    plugin.edit(0.5)
    line = rf"module {plugin.path.stem} \(\w+ -> \w+\); --accept-changes continues; --force"
    with pytest.raises(InputError, match=line):
        run_tables(plugin.table(6), log, resume=True)
    plugin.edit(1.0)  # as it was
    run_tables(plugin.table(6), log, resume=True)
    assert differences(whole, log) == []


def test_accepted_changes_are_recorded(plugin, tmp_path):
    log = tmp_path / "log.h5"
    run_tables(plugin.table(2), log)
    for factor, rounds in ((0.5, 4), (0.25, 6)):
        plugin.edit(factor)
        run_tables(plugin.table(rounds), log, resume=True, accept=True)
    with h5py.File(log) as file:
        lines = file.attrs["accepted_changes"].splitlines()
        now = json.loads(file.attrs["code"])
    assert [line.split(":")[0] for line in lines] == ["round 2", "round 4"]
    assert all(f"module {plugin.path.stem} (" in line for line in lines)
    assert lines[1].endswith(f"-> {now[f'module {plugin.path.stem}']})")


def test_a_complete_log_of_other_code_is_not_taken_for_this_run(plugin, tmp_path, capfd):
    log = tmp_path / "log.h5"
    run_tables(plugin.table(3), log)
    run_tables(plugin.table(3), log, resume=True)
    assert "complete, done at round 3" in capfd.readouterr().err
    plugin.edit(0.5)
    with pytest.raises(InputError, match=rf"module {plugin.path.stem} "):
        run_tables(plugin.table(3), log, resume=True)
    log.with_name("log.h5.ckpt").unlink()  # then the log itself is asked
    with pytest.raises(InputError, match=rf"module {plugin.path.stem} "):
        run_tables(plugin.table(3), log, resume=True)


@pytest.mark.parametrize("what", ["module mpisim.core.rng", "library numpy", "processor"])
def test_what_executes_a_run_must_agree(what, monkeypatch, tmp_path):
    log, tables = tmp_path / "log.h5", table({"name": "gd", "stepsize": 0.1}, rounds=3)
    run_tables(tables, log)
    original = identity.executed_by
    for path in ("mpisim.runs.identity", "mpisim.runs.setup"):
        monkeypatch.setattr(f"{path}.executed_by", lambda e: original(e) | {what: "another"})
    with pytest.raises(InputError, match=rf"{what} \(.* -> another\)"):
        run_tables(tables, log, resume=True)
    run_tables(tables, log, resume=True, accept=True)


def test_the_processor_counts_where_bits_depend_on_it(plugin, monkeypatch):
    """Not where they are the same on all of its kind; of a plugin nobody knows."""

    def processor(tables):
        return identity.executed_by(parse(tables))["processor"]

    own = table({"name": "dcgd", "stepsize": 0.1}, {"name": "randk", "k": 3})
    before = processor(own), processor(plugin.table(3))
    monkeypatch.setattr("mpisim.core.numerics.processor.facts", lambda: {"cpu": "another"})
    assert processor(own) == before[0] == platform.machine()
    assert processor(plugin.table(3)) == "another" != before[1]
    monkeypatch.setattr(RandK, "portable", False)
    inner = {"name": "compose", "outer": {"name": "permk"}, "inner": {"name": "randk", "k": 3}}
    assert processor(own | {"compressor": inner}) == "another"
