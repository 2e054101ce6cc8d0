"""The errors that end a run, each with the exit code of the command line."""


class MpisimError(Exception):
    """Base of the errors that are reported as one line, without a traceback."""

    exit_code = 1
    agreed = False  # True: every rank raises it at the same point


class InputError(MpisimError):
    """Bad usage or bad input: says what, where and what is allowed. Exit code 2."""

    exit_code = 2


class Unlike(MpisimError):
    """The ranks of a job have other software, another experiment or other data. Exit code 2."""

    exit_code = 2
    agreed = True


class WireError(MpisimError):
    """Bytes that are not a valid message. Exit code 1."""


class OutputError(MpisimError):
    """What a run writes cannot be written: a full disk, say. Exit code 1."""


class Diverged(MpisimError):
    """The loss is no longer finite. Exit code 3."""

    exit_code = 3
    agreed = True
