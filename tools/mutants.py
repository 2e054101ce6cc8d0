"""python -m tools.mutants [NUMBER ...]: which faults of tools/mutants.txt do the tests see?

Each fault changes one line of a copy of the checkout; the tests named with it should then fail. The
lines were drawn with a seed, four of each room, without those whose change changes nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LEFT_OUT = (".git", ".venv", ".*_cache", "build", "datasets")
TABLE = re.compile(r"^(\S+)\n- (.*)\n\+ (.*)\n((?:tests/\S+\s?)+)$", re.MULTILINE)


class Mutant(NamedTuple):
    file: str
    line: str
    other: str
    tests: tuple[str, ...]

    def outcome(self, folder: Path) -> str:
        """In a copy of the checkout in ``folder``, which is as before in the end."""
        path = folder / self.file
        text = path.read_text()
        if text.count(self.line) != 1:
            return "stale"
        path.write_text(text.replace(self.line, self.other))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--seed", "1"]
        env = os.environ | {"PYTHONPATH": str(folder)}
        done = subprocess.run([*command, *self.tests], cwd=folder, env=env, capture_output=True)
        shutil.copy2(ROOT / self.file, path)  # with its time: kernels are not compiled again
        return {0: "missed", 1: "caught"}.get(done.returncode, f"pytest: {done.returncode}")


def mutants() -> list[Mutant]:
    text = (ROOT / "tools" / "mutants.txt").read_text()
    return [Mutant(a, b, c, tuple(tests.split())) for a, b, c, tests in TABLE.findall(text)]


def main(numbers: list[str]) -> int:
    """The exit code is 1 if a fault was not seen."""
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "checkout"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        for number, mutant in enumerate(mutants(), 1):
            if not numbers or str(number) in numbers:
                outcomes.append(mutant.outcome(folder))
                print(f"{number:2} {outcomes[-1]:7} {mutant.file}: {mutant.other}", flush=True)
    print(f"{outcomes.count('caught')} of {len(outcomes)} are caught")
    return int(outcomes.count("caught") < len(outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
