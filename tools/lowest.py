"""Prints the lowest versions of setup.cfg as constraints: ``numpy >= 2.0`` as ``numpy==2.0.*``.

Usage: python tools/lowest.py > lowest.txt; PIP_CONSTRAINT=$PWD/lowest.txt make test
"""

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

SETUP = Path(__file__).resolve().parents[1] / "setup.cfg"
REQUIREMENT = re.compile(r"^([\w-]+) >= ([\d.]+)(?:, < [\d.]+)?$")


def constraints(text: str) -> Iterator[str]:
    """A line for each requirement in the text of a setup.cfg, in its order, each once."""
    config = configparser.ConfigParser()
    config.read_string(text)
    lists = [config["options"]["install_requires"], *config["options.extras_require"].values()]
    lines = [line for one in lists for line in one.split("\n") if line]
    for line in dict.fromkeys(lines):
        parts = REQUIREMENT.match(line)
        if parts is None:
            raise SystemExit(f"lowest.py: {line!r} is not NAME >= VERSION[, < VERSION]")
        name, version = parts.groups()
        yield f"{name}=={version}.*"


if __name__ == "__main__":
    print("\n".join(constraints(SETUP.read_text())))
