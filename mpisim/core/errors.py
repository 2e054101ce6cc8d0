"""The errors that end a run, each with the exit code of the command line."""


class MpisimError(Exception):
    """Base of the errors reported as one line, without a traceback."""

    exit_code = 1
    agreed = False  # True: every rank raises it at the same point


class InputError(MpisimError):
    """Bad usage or bad input; the message says what, where and what is allowed. Exit code 2."""

    exit_code = 2


class InconsistentRanks(MpisimError):
    """The ranks of a job differ in software, experiment or data. Exit code 2."""

    exit_code = 2
    agreed = True


class WireError(MpisimError):
    """Bytes that are not a valid message. Exit code 1."""


class OutputError(MpisimError):
    """A file cannot be written, because the disk is full, say. Exit code 1."""


class Diverged(MpisimError):
    """The loss is no longer finite. Exit code 3."""

    exit_code = 3
    agreed = True
