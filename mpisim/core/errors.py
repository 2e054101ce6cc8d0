"""The errors that end a run, each with the exit code of the command line, and their texts."""

from __future__ import annotations

import importlib
import re
import signal
import threading
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Self

KEYS = tomllib.loads(Path(__file__).with_name("synonyms.toml").read_text("utf-8"))
SYNONYMS = {other: key for key, others in KEYS.items() for other in others}


class MpisimError(Exception):
    """Base of the errors reported as one line, without a traceback."""

    exit_code = 1
    agreed = False  # True: every rank raises it at the same point

    def on_every_rank(self) -> Self:
        """The error, which every rank raises at the same point."""
        self.agreed = True
        return self


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


class MethodError(MpisimError):
    """A method uses what it must not know; found by ``run.debug``. Exit code 1."""

    agreed = True


class Diverged(MpisimError):
    """A run has diverged. Exit code 3."""

    exit_code = 3
    agreed = True


def needs_a_number(why: str) -> InputError:
    """The error of a step that no theorem gives."""
    return InputError(f'method.stepsize: {why}; give a number instead of "theory"')


@contextmanager
def terminable() -> Iterator[None]:
    """Meanwhile SIGTERM raises a `KeyboardInterrupt` with its number; a second one kills."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt(number)

    usual = signal.getsignal(signal.SIGTERM)
    here = threading.current_thread() is threading.main_thread() and usual == signal.SIG_DFL
    if here:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        if here:
            signal.signal(signal.SIGTERM, usual)


def interruption(error: KeyboardInterrupt) -> tuple[int, str]:
    """The exit code and the line of a command that SIGINT or, in `terminable`, SIGTERM ends."""
    number = error.args[0] if error.args else signal.SIGINT
    return 128 + number, f"stopped by {'SIGTERM' if number == signal.SIGTERM else 'Ctrl-C'}"


def library(name: str, extra: str, what: str) -> ModuleType:
    """The library ``name``; `InputError` says that ``what`` needs it where it is missing.

    extra : of mpisim, to install it with; empty if there is none
    """
    try:
        module = importlib.import_module(name)
        if getattr(module, "__file__", name) is None:  # a folder of this name: `datasets`
            raise ImportError
        return module
    except ImportError:
        package = f"'mpisim[{extra}]'" if extra else name
        raise InputError(f"{what} needs {name}: pip install {package}") from None


def import_failure(error: BaseException, loader: str) -> str:
    """What went wrong, and in which line of what the file ``loader`` imported."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}: " if error.filename else ""
        return f"{place}{error.msg}"
    import traceback  # for mistakes only

    text = " ".join(str(error).split())
    if not isinstance(error, MpisimError | ImportError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    machinery = ("<frozen importlib", str(Path(importlib.__file__).parent))
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename != loader and not frame.filename.startswith(machinery):
            return f"{frame.filename}:{frame.lineno}: {text}"
    return text


def suggestion(name: object, names: Iterable[str]) -> str:
    """``did you mean 'randk'? `` for a name that is close to a known one; else empty.

    ``TopK`` and ``top_k`` are ``topk``; letters may also be swapped, missing or too many. Other
    words for it are in `SYNONYMS`.
    """
    import difflib  # for mistakes only

    plain_names, given = {plain(one): one for one in names}, plain(str(name)[:100])
    meant = plain(SYNONYMS.get(given, given))
    close = [meant] if meant in plain_names else difflib.get_close_matches(given, plain_names, n=1)
    return f"did you mean {plain_names[close[0]]!r}? " if close else ""


def plain(name: str) -> str:
    """A name in small letters, without hyphens, underscores and spaces."""
    return re.sub(r"[-_ ]", "", name).lower()
