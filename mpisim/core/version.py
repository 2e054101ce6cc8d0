"""The version of the package, in logs, in checkpoints and for pip."""

VERSION = "0.1.0"
