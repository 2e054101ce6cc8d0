"""The sub-commands `mpisim figure` and `mpisim claims`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpisim.analysis import papers

FOLDER = Path("figures")


def add_figure(parser: argparse.ArgumentParser) -> None:
    """The flags of `mpisim figure`."""
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(papers.FIGURES)}")
    parser.add_argument(
        "--logs", metavar="FOLDER", type=Path, help="of a sweep (default: the figure's own)"
    )
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, default=FOLDER, help="of pictures and claims"
    )
    parser.set_defaults(command=lambda args, argv: figure(args.name, args.logs, args.out))


def add_claims(parser: argparse.ArgumentParser) -> None:
    """The flags of `mpisim claims`."""
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", type=Path, default=FOLDER, help="of the claims"
    )
    parser.set_defaults(command=lambda args, argv: claims(args.folder))


def figure(name: str, logs: Path | None, out: Path) -> int:
    """Draw OUT/NAME.png and .pdf, write OUT/NAME.claims.json, print the claims."""
    from mpisim.analysis.claims import table, write
    from mpisim.analysis.plot import save

    module = papers.load(name)
    folder = papers.folder_of(name) if logs is None else logs
    if hasattr(module, "read"):
        found = module.read(folder)
    else:
        found, left = papers.logs_of(folder)
        for line in left:
            print(line)
    drawn = module.draw(found)
    pictures = [out / f"{name}{suffix}" for suffix in (".png", ".pdf")]
    for picture in pictures:
        save(drawn, picture)
    checked = module.claims(found)
    path = write(out / f"{name}.claims.json", checked)
    print(f"{table(name, checked)}\n\n{', '.join(map(str, [*pictures, path]))}")
    return 0


def claims(folder: Path) -> int:
    """Print the claims of all figures in a folder."""
    from mpisim.analysis.claims import SUFFIX, read, table
    from mpisim.core.errors import InputError

    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise InputError(f"{folder}: no *{SUFFIX} there; draw a figure of a paper first")
    print("\n\n".join(table(path.name.removesuffix(SUFFIX), read(path)) for path in paths))
    return 0
