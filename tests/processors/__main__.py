"""python -m tests.processors: all experiments under all settings, against this processor's own."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.processors.experiments import write_dense
from tests.processors.settings import HOST, OTHERS


def main() -> int:
    """1 if a bit differs."""
    different = 0
    with tempfile.TemporaryDirectory() as name:
        dense = Path(name) / "dense.txt"
        write_dense(dense)
        own = HOST.digests(dense, "all", Path(name))
        for setting in OTHERS:
            if lacking := setting.lacks():
                print(f"{setting.name}: skipped, this processor lacks {', '.join(lacking)}")
                continue
            found = setting.digests(dense, "all", Path(name))
            wrong = [result for result in own if found[result] != own[result]]
            print(f"{setting.name}: {len(own) - len(wrong)} of {len(own)} results are the same")
            print(*(f"    {result}" for result in wrong), sep="\n", end="\n" if wrong else "")
            different += len(wrong)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
