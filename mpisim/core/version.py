"""The version of the package, in logs, in checkpoints and for pip."""

VERSION = "1.0.0"
