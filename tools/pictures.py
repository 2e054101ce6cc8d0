"""Draws the pictures of the tutorial again: runs the commands of its pages in a folder.

Usage: python -m tools.pictures FOLDER [PAGE ...]
PAGE: first-run, tuning, ...; all of `PICTURES` unless given. Pages build on the ones before.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

from mpisim.cli import main as mpisim

TUTORIAL = Path(__file__).resolve().parents[1] / "docs/tutorial"
BLOCK = re.compile(r"^```(sh|toml|python)\n(?:# (\S+)\n)?(.*?)^```", re.M | re.S)
PICTURES = {
    "first-run": "first.png",
    "tuning": "best.png",
    "bits-and-seconds": "seconds.png",
    "local-steps": "local.png",
    "own-compressor": "window.png",
    "own-study": "figures/papers-fig1.png",
}
COLOURS = 64


def run(page: str) -> None:
    """Write the files of a page, and run its commands, without mpirun."""
    for language, name, text in BLOCK.findall((TUTORIAL / f"{page}.md").read_text()):
        if name:
            Path(name).write_text(text)
        for line in text.splitlines() if language == "sh" else ():
            words = shlex.split(re.sub(r"^mpirun -n \d+ ", "", line))
            if mpisim(words[1:]) != 0:
                raise SystemExit(f"{page}: {line}")


def keep(picture: Path) -> None:
    """Store a picture beside the pages, at half its size and with few colours."""
    from PIL import Image

    with Image.open(picture) as drawn:
        small = drawn.convert("RGB").resize((drawn.width // 2, drawn.height // 2))
    small.quantize(COLOURS).save(TUTORIAL / picture.name, optimize=True)


def main() -> None:
    folder, *pages = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for page in pages or PICTURES:
        run(page)
        keep(Path(PICTURES[page]))


if __name__ == "__main__":
    main()
