"""The documents as text: links lead somewhere, and sentences are short."""

import re
from pathlib import Path

import pytest

from mpisim.cli.entry import COMMANDS
from mpisim.compressors import COMPRESSORS
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.names import METHODS
from mpisim.problems import PROBLEMS
from mpisim.runs.log.schema import columns
from mpisim.runs.metrics import METRICS

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "run/*/README.md", "run/*/results/README.md")
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
FENCE = re.compile(r"^(```|:::).*?^\1$", re.M | re.S)
LIMIT = 35  # words of a sentence
# Written for one release, or generated: from claims that quote papers, and from docstrings.
FREE = ("CHANGELOG.md", "results/README.md", "gallery.md", "names.md")


def text(path: Path) -> str:
    """A page without its code."""
    return FENCE.sub("", path.read_text())


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    heads = re.findall(r"^#+ (.*)$", text(path), re.M)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", head).lower() for head in heads]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target, anchor in LINK.findall(text(path)):
        if "://" in target:
            continue
        found = (path.parent / target).resolve() if target else path
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{target}#{anchor}"


def sentences(path: Path) -> list[str]:
    """The sentences of a page's paragraphs and lists; tables, code and headings are left out."""
    lines = [line for line in text(path).splitlines() if not line.startswith(("    ", "|", "#"))]
    blocks = re.split(r"\n\s*\n|\n\s*[*\d][.]? |\n: |\n> ", "\n".join(["", *lines]))
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", block) for block in blocks]
    return [one for block in plain for one in re.split(r"(?<=[.!?:;])\s+", " ".join(block.split()))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_are_short(path):
    if str(path).endswith(FREE):
        return
    long = [one for one in sentences(path) if len(re.findall(r"[^\W\d_]{2,}", one)) > LIMIT]
    assert not long, "\n".join(long)


@pytest.mark.parametrize("names", [COMPRESSORS, METHODS, PROBLEMS])
def test_every_name_is_documented(names):
    page = (ROOT / "docs/reference/experiment.md").read_text()
    missing = [name for name in names if ours(names[name]) and f"`{name}`" not in page]
    assert not missing and len(names) > 5


def ours(named) -> bool:
    """Whether a class, or a method's estimator, is the package's; other tests register plugins."""
    kind = named if isinstance(named, type) else ESTIMATORS[named.estimator]
    return kind.__module__.startswith("mpisim.")


@pytest.fixture
def generated(monkeypatch):
    """The texts that the site's pages have from the code, by name."""
    monkeypatch.syspath_prepend(ROOT / "docs/extensions")
    module = pytest.importorskip("generated_tables")
    return {name: write() for name, write in module.GENERATORS.items()}


def test_pages_hold_what_the_code_says(generated):
    from generated_tables import current

    pages = [path for path in ROOT.glob("docs/**/*.md") if "<!-- end -->" in path.read_text()]
    assert len(pages) >= 3
    stale = [
        str(path.relative_to(ROOT))
        for path in pages
        if current(path.read_text()) != path.read_text()
    ]
    assert not stale, f"{stale}: run python docs/extensions/generated_tables.py"


def test_meanings_are_of_keys(generated):
    from meanings import MEANINGS

    shown = "\n".join(generated.values())
    keys = {key for table in MEANINGS.values() for key in table}
    assert [key for key in keys if f"| `{key}` | " not in shown] == []


def test_keys_of_a_method_have_its_own_defaults(generated):
    """A pair's defaults win over those of its estimator."""
    cd_adam = generated["methods"].partition("### `cd-adam`\n")[2].partition("\n### ")[0]
    start = next(line for line in cd_adam.splitlines() if line.startswith("| `start` |"))
    assert '| `"zero"` |' in start
    assert '`start` (`"zero"`)' in generated["method_names"]


def test_generated_pages(generated):
    from names_and_keys import belongs, methods_of_the_package

    marked = {
        name
        for path in ROOT.glob("docs/**/*.md")
        for name in re.findall(r"^<!-- generated: (\w+) -->$", path.read_text(), re.M)
    }
    assert marked == set(generated)
    more = [name for kind in METRICS.values() for name, *_ in kind.columns]
    for name in [*(name for name, *_ in columns(True)), *more]:
        assert f"| `{name}` |" in generated["columns"]
    compressors = [name for name, kind in COMPRESSORS.items() if belongs(kind)]
    methods = [name for name, _ in methods_of_the_package()]
    assert len(compressors) > 15 and len(methods) > 20
    for names, section in ((compressors, "compressors"), (methods, "methods")):
        assert all(f"### `{name}`\n" in generated[section] for name in names)
    for name in COMMANDS:
        assert f"## mpisim {name}\n" in generated["commands"]
        assert f"usage: mpisim {name}" in generated["commands"]
