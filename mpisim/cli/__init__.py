"""The command line: a file for each sub-command, and one parser for what they share."""

from mpisim.cli.entry import console, main

__all__ = ["console", "main"]
