"""Labels are declared once, kept in logs, and shown without the plugin that declared them."""

import pytest

import mpisim
from mpisim.analysis.run_groups import common_title, group_runs
from mpisim.analysis.show import show_text
from mpisim.compressors import COMPRESSORS
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from mpisim.problems.quadratic import Quadratic
from mpisim.runs.log.reader import read
from tests.helpers import run_tables


@pytest.fixture
def plugin():
    """A method, a compressor and a problem; forget() is as if another process read the logs."""
    randk, marina = COMPRESSORS["randk"], ESTIMATORS["marina"]

    @mpisim.method("mine", label="Mine!", letters={"p": "π", "share": "σ"})
    class Mine(marina):
        share: float = 0.5

    @mpisim.compressor("mine", label="MineK", letters={"k": "κ"})
    class MineK(randk):
        other: int = 3

    @mpisim.compressor("plain")
    class Plain(randk):
        other: int = 3

    @mpisim.problem("mine", label="my squares")
    class Squares(Quadratic):
        pass

    def forget():
        for names in (COMPRESSORS, ESTIMATORS, METHODS, PROBLEMS):
            for name in {"mine", "plain"} & names.loaded().keys():
                del names[name]

    yield forget
    forget()


def made(folder, name, **changes):
    """The log of a small run."""
    tables = {
        "problem": {"name": "mine", "dimension": 12, "workers": 3, "noise": 0.2},
        "method": {"name": "mine", "stepsize": 0.05, "p": 0.5, "share": 0.25},
        "compressor": {"name": "mine", "k": 2},
        "run": {"rounds": 2},
    }
    for table, keys in changes.items():
        tables[table] |= keys
    run_tables(tables, folder / f"{name}.h5")
    return folder / f"{name}.h5"


def test_a_plugin_is_labelled_wherever_its_logs_are(plugin, tmp_path):
    logs = [made(tmp_path, "a"), made(tmp_path, "b", method={"share": 0.75})]
    logs += [made(tmp_path, "c", compressor={"name": "plain"})]
    logs += [made(tmp_path, "d", compressor={"k": 3})]
    plugin()
    groups = group_runs(map(read, logs))
    assert [group.label for group in groups] == [
        "σ = 0.25, MineK (κ = 2)",
        "σ = 0.75, MineK (κ = 2)",
        "σ = 0.25, plain (K = 2, other = 3)",
        "σ = 0.25, MineK (κ = 3)",
    ]
    assert common_title(groups[:1]) == "Mine!, MineK (κ = 2)\nmy squares, 3 workers"
    assert "Mine!" in show_text(logs[0]) and "MineK (κ = 2)" in show_text(logs[0])
