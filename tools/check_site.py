"""Checks that a built site can be read without a network.

Usage: python -m tools.check_site FOLDER
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src"}
NOT_LOADED = {"canonical", "next", "prev", "index", "search"}  # of <link rel=...>


class _Loads(HTMLParser):
    """Collects the addresses that a page loads from elsewhere when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get(LOADED.get(tag, ""), "") or ""
        if values.get("rel") not in NOT_LOADED and "//" in address.split("?")[0]:
            self.bad.append(address)


def loads(page: str) -> list[str]:
    """The addresses on other machines from which a page of HTML loads something."""
    parser = _Loads()
    parser.feed(page)
    return parser.bad


def main() -> int:
    pages = sorted(Path(sys.argv[1]).rglob("*.html"))
    bad = [f"{page}: {one}" for page in pages for one in loads(page.read_text())]
    print("\n".join(bad) if bad else f"{len(pages)} pages, none loads anything from elsewhere")
    return bool(bad) or not pages


if __name__ == "__main__":
    sys.exit(main())
