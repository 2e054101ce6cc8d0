"""Why a module of a plugin cannot be imported, in one line."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

from mpisim.core.errors import MpisimError


def reason(error: BaseException, loader: str) -> str:
    """What went wrong, and in which line of what the file ``loader`` imported."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}: " if error.filename else ""
        return f"{place}{error.msg}"
    text = " ".join(str(error).split())
    if not isinstance(error, MpisimError | ImportError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    machinery = ("<frozen importlib", str(Path(importlib.__file__).parent))
    lines = [
        f"{frame.filename}:{frame.lineno}"
        for frame in frames
        if frame.filename != loader and not frame.filename.startswith(machinery)
    ]
    return f"{lines[0]}: {text}" if lines else text
