"""Imports in functions and for type checkers count, too."""

import pytest

from tools import import_circles

LAZY = "def f():\n    from mpisim.room import a\n"
TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import mpisim.room.a\n"


@pytest.mark.parametrize("back", [LAZY, TYPES, "from mpisim.room.a import x\n"])
def test_a_circle_within_a_room(back, tmp_path):
    room = tmp_path / "mpisim" / "room"
    room.mkdir(parents=True)
    (room / "__init__.py").write_text("")
    (room / "a.py").write_text("from mpisim.room.b import f\n")
    (room / "b.py").write_text("import os\n")
    assert import_circles.circle(tmp_path) == []
    (room / "b.py").write_text(back)
    assert sorted(set(import_circles.circle(tmp_path))) == ["mpisim.room.a", "mpisim.room.b"]
