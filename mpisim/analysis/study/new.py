"""Makes a study from the template."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from mpisim.core.errors import InputError, OutputError


def create(folder: Path) -> list[Path]:
    """Write a study that runs as it is into a new or empty folder; returns its files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists already; name a new folder")
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("README.md", "figures.py", "fig1.toml"):
            text = files(__package__).joinpath("template", name).read_text(encoding="utf-8")
            text = text.replace("STUDY", folder.resolve().name).replace("FOLDER", str(folder))
            written.append(folder / name)
            written[-1].write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from None
    return written
