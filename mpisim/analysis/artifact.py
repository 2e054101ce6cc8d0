"""One archive of a study on record: its files, the environment, a manifest and a filled checklist.

The zip file is a Research Object Crate, https://w3id.org/ro/crate/1.1. Its manifest is read by
``sha256sum -c``, too. `examine_archive` checks one, and runs comparisons again.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from importlib import metadata
from mimetypes import guess_type
from pathlib import Path
from random import randrange
from typing import Any

from mpisim.analysis.claims import claim_again
from mpisim.analysis.formatting import markdown, rendered
from mpisim.analysis.labels import several
from mpisim.analysis.repeat import repeat
from mpisim.analysis.results import Result, of_study
from mpisim.analysis.results_page import duration, listed, run_counts, varied
from mpisim.analysis.study.figure import FILE, Study, load
from mpisim.analysis.verify import Check
from mpisim.comm.job import on_first
from mpisim.core import VERSION
from mpisim.core.errors import InputError
from mpisim.core.files import write_file, writing
from mpisim.core.imports import PACKAGE
from mpisim.core.machine import gigabytes, reading_budget
from mpisim.runs.host import commit
from mpisim.runs.identity import LIBRARIES

CRATE, MANIFEST = "ro-crate-metadata.json", "manifest-sha256.txt"
LOCK, CHECKLIST = "requirements.txt", "CHECKLIST.md"
PROFILE = "https://w3id.org/ro/crate/1.1"
NOBODY = "NAME OF THE AUTHORS"  # in the template of CITATION.cff
WHEN = (1980, 1, 1, 0, 0, 0)  # of all members: equal files make equal bytes
TORCH = "https://download.pytorch.org/whl"
MINUTES = 600.0  # seconds of runs that a reader may repeat at once
COMPARISONS = 3  # that are run again
MEMBER = re.compile(r"([0-9a-f]{64})  (\S.*)")
DAMAGE = (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, NotImplementedError)


def write(study: Study, path: Path) -> Path:
    """Write the archive of a study on record; returns its path.

    `InputError` if nothing is on record, or a grid names a plugin outside of the study's folder;
    `OutputError` if the file cannot be written.
    """
    content, memory = contents(study, path), io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, WHEN), data, zipfile.ZIP_DEFLATED)
    write_file(path, memory.getvalue())
    return path


def contents(study: Study, out: Path) -> dict[str, bytes]:
    """{name in the archive: content}; the study is a folder of its name, without an old ``out``."""
    results, folder = of_study(study.folder), study.folder.resolve()
    modules = _modules(study, results)
    files = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
        if path.is_file() and path != out.resolve() and not hidden:
            files[f"{folder.name}/{inside.as_posix()}"] = path.read_bytes()
    authors = _authors(files.get(f"{folder.name}/CITATION.cff", b"").decode(errors="replace"))
    files[LOCK] = _lock().encode()
    files[CHECKLIST] = _checklist(study, results, authors, files).encode()
    files[CRATE] = _crate(study, results, authors, files, modules).encode()
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()]
    return files | {MANIFEST: "".join(lines).encode()}


def _modules(study: Study, results: Iterable[Result]) -> list[str]:
    """Plugins of the grids on record that are installed modules; files must be in the folder."""
    modules, folder = set(), study.folder.resolve()
    for one in (result.provenance for result in results):
        for grid in study.figure(one.figure).source.parts():
            for point in grid.all_points(study.folder, one.scale)[1]:
                modules.update(point.get("plugin", []))
    files = {name for name in modules if name.endswith(".py")}
    for file in files:
        if not Path(file).resolve().is_relative_to(folder):
            raise InputError(f"plugin {file}: is outside of {study.folder}; move it there")
    return sorted(modules - files)


def _authors(citation: str) -> list[str]:
    names = re.findall(r"^ +(?:- )?(?:family-)?names?: *(.+?) *$", citation, re.MULTILINE)
    return [name.strip("\"'") for name in names if NOBODY not in name]


def _lock() -> str:
    """The libraries of this process, for pip. mpisim itself comes from elsewhere."""
    source = commit(PACKAGE).get("git_commit", "of a package")
    versions = {d.name: d.version for d in metadata.distributions() if d.name}
    lines = [f"{n}=={v}" for n, v in sorted(versions.items()) if n.lower() != "mpisim"]
    if build := versions.get("torch", "").partition("+")[2]:  # PyPI has none of these
        lines.insert(0, f"--extra-index-url {TORCH}/{build}")
    head = [
        f"# mpisim {VERSION}, commit {source}, is not among these: install it first",
        f"# Python {platform.python_version()} on {platform.platform()}",
    ]
    return "\n".join([*head, *lines, ""])


def _checklist(
    study: Study, results: Sequence[Result], authors: Sequence[str], files: Mapping[str, bytes]
) -> str:
    """What reviewers ask, answered from the record; what only a person knows is open."""
    rows = []
    for one in (result.provenance for result in results):
        keys = {key: text for key, text in varied(one.settings).items() if key != "run.seed"}
        seeds = several(_of(one.settings, "run.seed")) or "none"
        row = [f"{one.figure}, {one.scale}", run_counts(one), listed(keys) or "none", seeds]
        cost = "in minutes" if one.seconds <= MINUTES else "needs these resources"
        rows.append([*row, duration(one.seconds), "; ".join(one.machines), cost])
    data = {str(name) for one in results for name in _of(one.provenance.settings, "problem.data")}
    commits = [text for r in results for text in (*r.provenance.run_commits, r.provenance.commit)]
    name = study.folder.resolve().name
    items = {
        "every figure is of committed code": not any(" " in text for text in commits),
        "authors are named in `CITATION.cff`": bool(authors),
        "a license allows others to use it": f"{name}/LICENSE" in files,
        "the study has a `README.md`": f"{name}/README.md" in files,
        "no seed was left out after a result": False,
    }
    title = study.title or name
    return rendered("checklist.md", title=title, rows=rows, data=data, items=items, table=markdown)


def _of(settings: Any, key: str) -> list[Any]:
    fixed = [settings.fixed[key]] if key in settings.fixed else []
    return settings.varied.get(key, fixed)


def _crate(
    study: Study,
    results: Sequence[Result],
    authors: Sequence[str],
    files: Mapping[str, bytes],
    modules: Sequence[str],
) -> str:
    """The metadata: what the files are, who made them, and which run made each result."""
    name, here = study.folder.resolve().name, commit(PACKAGE).get("git_commit", "")
    people = [{"@id": f"#author-{i}", "@type": "Person", "name": n} for i, n in enumerate(authors)]
    used = "mpisim", *modules
    tools = [{"@id": f"#{n}", "@type": "SoftwareApplication", "name": n} for n in used]
    tools[0]["softwareVersion"] = f"{VERSION}{here and f', commit {here}'}"
    made = []
    for one in results:
        stem, origin = one.picture.removesuffix(".png"), one.provenance
        outputs = [{"@id": n} for n in files if n.startswith(f"{name}/results/{stem}.")]
        title = f"{origin.title} ({origin.scale}), {origin.seconds:g} s of runs"
        action = {"@id": f"#{stem}", "@type": "CreateAction", "name": title}
        made.append(action | {"instrument": _ids(tools), "result": _ids(outputs)})
    parts = [_file(path) | {"contentSize": str(len(data))} for path, data in files.items()]
    parts.append(_file(MANIFEST) | {"name": "SHA-256 of all other files"})
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": name,
        "description": study.title or name,
        "datePublished": date.today().isoformat(),
        "hasPart": _ids(parts),
        "mentions": _ids(made),
    }
    if (license := f"{name}/LICENSE") in files:
        root["license"] = {"@id": license}
    if people:
        root["author"] = _ids(people)
    about = {"@id": CRATE, "@type": "CreativeWork", "about": {"@id": "./"}}
    about["conformsTo"] = {"@id": PROFILE}
    graph = [about, root, *people, *tools, *made, *parts]
    return json.dumps({"@context": f"{PROFILE}/context", "@graph": graph}, indent=1) + "\n"


def _ids(entities: Iterable[Mapping[str, Any]]) -> Any:
    """References to entities: a list, or the only one."""
    ids = [{"@id": one["@id"]} for one in entities]
    return ids[0] if len(ids) == 1 else ids


def _file(path: str) -> dict[str, Any]:
    code = path.endswith((".py", ".toml"))
    return {
        "@id": path,
        "@type": ["File", "SoftwareSourceCode"] if code else "File",
        "name": Path(path).name,
        "encodingFormat": guess_type(path)[0] or "text/plain",
    }


# an archive from elsewhere


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
            yield Check(text, () if same else [line.strip() for line in lines])


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
    """The files are those of the manifest."""
    lines = files[MANIFEST].decode(errors="replace").splitlines()
    listed = {match[2]: match[1] for match in map(MEMBER.fullmatch, lines) if match}
    wrong = [f"{name}: is not in the archive" for name in listed if name not in files]
    for name, data in files.items():
        if name not in (*listed, MANIFEST):
            wrong.append(f"{name}: is not in {MANIFEST}")
        elif name != MANIFEST and hashlib.sha256(data).hexdigest() != listed[name]:
            wrong.append(f"{name}: has changed since the archive was written")
    return Check(f"{len(files)} files are those of {MANIFEST}", wrong)


def _environment(files: Mapping[str, bytes]) -> Check:
    """The libraries that may change the last bits. Other versions are a remark."""
    lock = files[LOCK].decode(errors="replace")
    pinned = dict(re.findall(r"^(\S+)==(\S+)$", lock, re.MULTILINE))
    here = {d.name: d.version for d in metadata.distributions() if d.name in LIBRARIES}
    other = [
        f"{name} {pinned[name]}, here {version}"
        for name, version in sorted(here.items())
        if pinned.get(name, version) != version
    ]
    text = f"other libraries: {'; '.join(other)}" if other else f"the libraries are those of {LOCK}"
    return Check(text, done=not other)


def _extract(files: Mapping[str, bytes], folder: Path, path: Path) -> Path:
    """Write the files below ``folder``; the folder of the study."""
    for name, data in files.items():
        target = (folder / name).resolve()
        if not target.is_relative_to(folder.resolve()) or name.endswith("/"):
            raise InputError(f"{path}: {name!r} is not allowed as the name of a file in it")
        with writing(path, InputError, f"{name[:60]!r} cannot be unpacked"):
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
    return Check(f"{len(claims)} verdicts follow from the evidence on record", wrong)
