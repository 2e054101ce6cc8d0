"""The version of the package: of logs, of checkpoints and of what pip installs."""

VERSION = "0.1.0"
