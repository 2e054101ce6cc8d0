"""What the CD-Adam paper says, word for word, by name, and by the number of a figure."""

import tomllib
from pathlib import Path

QUOTES = tomllib.loads(Path(__file__).with_name("quotes.toml").read_text(encoding="utf-8"))
