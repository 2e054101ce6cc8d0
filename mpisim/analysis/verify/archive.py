"""Checks of an archive that `mpisim artifact` has written, and its comparisons run again."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from random import randrange
from typing import Any

from mpisim.analysis.claims import claim_again
from mpisim.analysis.results.artifact import CRATE, LOCK, MANIFEST
from mpisim.analysis.results.files import of_study
from mpisim.analysis.study.load import FILE, load
from mpisim.analysis.verify.checks import Check
from mpisim.analysis.verify.repeat import repeat
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError
from mpisim.core.machine import gigabytes, reading_budget
from mpisim.runs.identity import LIBRARIES

COMPARISONS = 3  # that are run again
MEMBER = re.compile(r"([0-9a-f]{64})  (\S.*)")
DAMAGE = (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, NotImplementedError)


def is_archive(path: Path) -> bool:
    """Whether it is to be read as an archive, and not as a log."""
    return path.is_file() and (path.suffix == ".zip" or zipfile.is_zipfile(path))


def examine_archive(path: Path, again: bool, trusted: bool, comm: Any) -> Iterator[Check]:
    """The checks of an archive, as they are made; with ``again`` also runs. Collective.

    trusted : whether the code of the study in the archive may be executed
    """
    if again and not trusted:
        raise InputError(f"{path}: its study is code: --load-plugins trusts it")
    files = on_first(comm, lambda: _read(path))
    yield on_first(comm, lambda: _manifest(files))
    yield on_first(comm, lambda: _environment(files))
    with tempfile.TemporaryDirectory() as made:
        folder = on_first(comm, lambda: _extract(files, Path(made), path))
        yield on_first(comm, lambda: _record(folder))
        if again:
            seed = on_first(comm, lambda: randrange(10**6))
            (first, *lines), same, stopped = repeat(load(folder), COMPARISONS, seed, comm)
            if stopped:
                yield Check("stopped", done=False, stopped=stopped)
                return
            text = first.replace(f"{folder}: ", "")
            yield Check(text, () if same else tuple(line.strip() for line in lines))


def _read(path: Path) -> dict[str, bytes]:
    """{name: content}; `InputError` for what is no archive of `mpisim artifact`."""
    try:
        with zipfile.ZipFile(path) as archive, reading_budget() as budget:
            size = sum(member.file_size for member in archive.infolist())
            if size > budget.bytes:
                more = "MPISIM_READ_GIGABYTES allows more"
                raise InputError(f"{path}: holds {gigabytes(size)}; {more}")
            files = {name: archive.read(name) for name in archive.namelist()}
    except DAMAGE as error:
        raise InputError(f"{path}: cannot be read as a zip file: {error}") from None
    if lacks := [name for name in (CRATE, MANIFEST, LOCK) if name not in files]:
        raise InputError(f"{path}: has no {lacks[0]}; `mpisim artifact STUDY` writes archives")
    return files


def _manifest(files: Mapping[str, bytes]) -> Check:
    """The files are those of the manifest, and of the metadata."""
    lines = files[MANIFEST].decode(errors="replace").splitlines()
    listed = {match[2]: match[1] for match in map(MEMBER.fullmatch, lines) if match}
    wrong = [f"{name}: is not in the archive" for name in listed if name not in files]
    for name, data in files.items():
        if name not in (*listed, MANIFEST):
            wrong.append(f"{name}: is not in {MANIFEST}")
        elif name != MANIFEST and hashlib.sha256(data).hexdigest() != listed[name]:
            wrong.append(f"{name}: has changed since the archive was written")
    try:
        parts = {one["@id"]: one for one in json.loads(files[CRATE])["@graph"]}["./"]["hasPart"]
        described = {one["@id"] for one in parts}
        wrong += [f"{CRATE}: lacks {n}" for n in sorted(files.keys() - described - {CRATE})]
    except (ValueError, KeyError, TypeError):
        wrong.append(f"{CRATE}: is not the metadata of a research object")
    return Check(f"{len(files)} files are those of {MANIFEST} and {CRATE}", tuple(wrong))


def _environment(files: Mapping[str, bytes]) -> Check:
    """The libraries that may change the last bits. Other versions are a remark."""
    text = files[LOCK].decode(errors="replace")
    pinned = dict(re.findall(r"^(\S+)==(\S+)$", text, re.MULTILINE))
    here = {d.name: d.version for d in metadata.distributions() if d.name in LIBRARIES}
    other = [
        f"{name} {pinned[name]}, here {version}"
        for name, version in sorted(here.items())
        if pinned.get(name, version) != version
    ]
    what = f"other libraries: {'; '.join(other)}" if other else "the libraries are those of"
    return Check(f"{what} {'' if other else LOCK}".strip(), done=not other)


def _extract(files: Mapping[str, bytes], folder: Path, path: Path) -> Path:
    """Write the files below ``folder``; the folder of the study."""
    for name, data in files.items():
        target = (folder / name).resolve()
        if not target.is_relative_to(folder.resolve()) or name.endswith("/"):
            raise InputError(f"{path}: {name!r} is not allowed as the name of a file in it")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    studies = sorted(folder.glob(f"*/{FILE}"))
    if len(studies) != 1:
        raise InputError(f"{path}: has {len(studies)} studies, a folder with {FILE}; must have 1")
    return studies[0].parent


def _record(folder: Path) -> Check:
    """Each decided verdict on record follows from the numbers beside it."""
    claims = [claim for result in of_study(folder) for claim in result.claims]
    wrong = [
        f"{claim.claim}: on record {claim.verdict}, judged again {again.verdict}"
        for claim in claims
        if (again := claim_again(claim)).verdict != claim.verdict
    ]
    return Check(f"{len(claims)} verdicts follow from the evidence on record", tuple(wrong))
