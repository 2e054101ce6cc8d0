"""The page of a study's results, made from the files on record alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from mpisim.analysis import claims as verdicts
from mpisim.analysis import results as files
from mpisim.analysis.claims import PROJECT, counts, firmness, sensitivity
from mpisim.analysis.formatting import escaped, markdown, rendered
from mpisim.analysis.labels import Settings, several
from mpisim.analysis.results import FOLDER, Provenance, Result, of_study, scale_order
from mpisim.analysis.study.figure import Drawn
from mpisim.core.files import write_file

PAGE = "README.md"
VERDICTS = "../../../docs/how-to/studies.md"  # in a checkout of mpisim, from its studies' results
MINUTES, HOURS = 120, 7200  # seconds from which on times are shown in these units


def record(drawn: Drawn, scale: str, seconds: float) -> list[Path]:
    """Write picture, claims and provenance into the study's results, and their page anew.

    Returns the files. ``seconds`` is what a measurement took; a log says this of its run.
    """
    study, figure = drawn.study, drawn.figure
    picture = files.small_png(drawn.picture)
    result = Result(files.provenance_of(study, figure, scale, seconds), drawn.claims)
    return [*files.write(study.folder / FOLDER, result, picture), write_page(study.folder)]


def judge_again(study: Path) -> list[Path]:
    """Judge the claims on record by today's rules, from their evidence; returns what changed."""
    changed = []
    for result in of_study(study):
        claims = list(map(verdicts.claim_again, result.claims))
        if claims != list(result.claims):
            name = f"{Path(result.picture).stem}{verdicts.SUFFIX}"
            changed.append(verdicts.write(study / FOLDER / name, claims))
    return changed


def write_page(study: Path) -> Path:
    """Write STUDY/results/README.md; returns it. `InputError` where nothing is on record."""
    path = study / FOLDER / PAGE
    text = page(of_study(study), linked=(path.parent / VERDICTS).exists())
    write_file(path, text.encode())
    return path


def page(results: Sequence[Result], linked: bool = True) -> str:
    """The page as Markdown: the verdicts of all figures, then each figure, its scales abreast.

    linked : with a link to what verdicts are, which a study of its own repository does not have
    """
    scales, figures = scales_of(results), by_figure(results)
    summary = [
        [f"[{name}](#{anchor(name)})", *(_counts(shown.get(scale)) for scale in scales)]
        for name, shown in figures.items()
    ]
    claims = [claim for result in results for claim in result.claims]
    return rendered(
        "results.md",
        study=results[0].provenance.study,
        chance=verdicts.chance(claims),
        firm=f"[firm]({VERDICTS}#verdicts)" if linked else "firm",
        moved=", ".join(f"{name} {n}" for name, (n, _) in sensitivity(claims).items() if n),
        figures={name: list(shown.values()) for name, shown in figures.items()},
        **{"scales": scales, "summary": summary, "table": markdown},
        **{"origin": _origin, "sentences": _sentences},
    )


def scales_of(results: Iterable[Result]) -> list[str]:
    """The scales on record, ``quick`` first."""
    scales = {result.provenance.scale for result in results}
    return sorted(scales, key=scale_order)


def by_figure(results: Iterable[Result]) -> dict[str, dict[str, Result]]:
    """{figure: {scale: result}}."""
    figures: dict[str, dict[str, Result]] = {}
    for result in results:
        figures.setdefault(result.provenance.figure, {})[result.provenance.scale] = result
    return figures


def anchor(figure: str) -> str:
    """How a link names the heading of a figure."""
    return figure.replace(".", "")


def _counts(result: Result | None) -> str:
    if result is None:
        return ""
    return "; ".join(filter(None, [counts(result.claims), firmness(result.claims)]))


def _origin(shown: Sequence[Result]) -> str:
    """Pictures, settings, runs, time, machine and commits, a column for each scale."""
    head = ["", *(result.provenance.scale for result in shown)]
    pictures = [f"![{result.provenance.figure}]({result.picture})" for result in shown]
    rows = [
        ["", *pictures],
        ["varied", *_settings(varied, shown)],
        ["fixed", *_settings(lambda s: {n: several([v]) for n, v in s.fixed.items()}, shown)],
    ]
    for name, text in (
        ("runs", run_counts),
        ("time", lambda one: duration(one.seconds)),
        ("machine", lambda one: "; ".join(one.machines)),
        ("plugins", lambda one: "; ".join(one.plugins)),
        ("commit of the runs", lambda one: "; ".join(one.run_commits)),
        ("commit of the figure", lambda one: one.commit),
    ):
        texts = [text(result.provenance) for result in shown]
        rows += [[name, *texts]] if any(texts) else []
    return markdown(head, rows)


def _settings(of: Callable[[Settings], dict[str, str]], shown: Sequence[Result]) -> list[str]:
    """Settings as text, those of later scales by how they differ from the first one's."""
    first, *others = [of(result.provenance.settings) for result in shown]
    cells, scale = [listed(first)], shown[0].provenance.scale
    for other in others:
        changed = {name: text for name, text in other.items() if first.get(name) != text}
        gone = [f"no `{name}`" for name in first if name not in other]
        but = "; ".join(filter(None, [listed(changed), *gone]))
        cells.append(f"as {scale}, but {but}" if but else f"as {scale}")
    return cells


def varied(settings: Settings) -> dict[str, str]:
    return {name: several(values) for name, values in settings.varied.items()}


def listed(settings: dict[str, str]) -> str:
    return "; ".join(f"`{name}`: {escaped(text)}" for name, text in settings.items())


def run_counts(one: Provenance) -> str:
    return ", ".join(f"{count} {status}" for status, count in one.runs.items()) or "none"


def duration(seconds: float) -> str:
    if seconds < MINUTES:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < HOURS else f"{seconds / 3600:.1f} h"


def _sentences(shown: Sequence[Result]) -> Iterator[tuple[str, list[list[str]]]]:
    """Each sentence of the paper, and the rows of a table of what is claimed."""
    # {(source, quote): {(claim, which of that text): {scale: cell}}}
    sentences: dict[tuple[str, str], dict[tuple[str, int], dict[str, str]]] = {}
    for result in shown:
        seen: Counter[tuple[str, str, str]] = Counter()
        for claim in result.claims:
            same = claim.source, claim.quote, claim.claim
            seen[same] += 1
            sentence = sentences.setdefault((claim.source, claim.quote), {})
            cells = sentence.setdefault((claim.claim, seen[same]), {})
            cells[result.provenance.scale] = f"**{claim.verdict}**: {escaped(claim.measured)}"
    for (source, quote), claims in sentences.items():
        rows = [
            [escaped(text), *(cells.get(result.provenance.scale, "") for result in shown)]
            for (text, _), cells in claims.items()
        ]
        paper = f'"{escaped(quote)}" ({escaped(source)})'
        yield paper if quote else f"{escaped(source)} ({PROJECT})", rows
