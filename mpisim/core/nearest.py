"""What a user may have meant by a name that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterable


def meant(name: object, known: Iterable[str]) -> str:
    """``did you mean 'randk'? `` for a name that is close to a known one; else empty.

    ``TopK`` and ``top_k`` are ``topk``; letters may also be swapped, missing or too many.
    """
    import difflib  # for mistakes only

    plain = {_plain(one): one for one in known}
    close = difflib.get_close_matches(_plain(str(name)[:100]), plain, n=1)
    return f"did you mean {plain[close[0]]!r}? " if close else ""


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()
