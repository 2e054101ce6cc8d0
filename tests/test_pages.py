"""The documents as text: links lead somewhere, sentences are short, counts are on record."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from mpisim.cli.parser import COMMANDS
from mpisim.compressors import COMPRESSORS
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
NAMED = re.compile(r"`((?:benchmarks|mpisim|run|tests|tools)/[\w./-]+)`")
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
def test_links_lead_somewhere_and_named_files_exist(path):
    """Also the tests that prove a promise; in CHANGELOG.md files may have gone."""
    page = text(path)
    missing = [name for name in NAMED.findall(page) if not (ROOT / name).exists()]
    assert path.name == "CHANGELOG.md" or missing == []
    for target, anchor in LINK.findall(page):
        if "://" in target:
            continue
        result = (path.parent / target).resolve() if target else path
        assert result.exists(), target
        if anchor and result.suffix == ".md":
            assert anchor in anchors(result), f"{target}#{anchor}"


def sentences(path: Path) -> list[str]:
    """The sentences of a page's paragraphs and lists; tables, code and headings are left out."""
    lines = [line for line in text(path).splitlines() if not line.startswith(("    ", "|", "#"))]
    blocks = re.split(r"\n\s*\n|\n\s*[*\d][.]? |\n: |\n> ", "\n".join(["", *lines]))
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", block) for block in blocks]
    return [one for block in plain for one in re.split(r"(?<=[.!?:;])\s+", " ".join(block.split()))]


def test_sentences_are_short():
    pages = [path for path in PAGES if not str(path).endswith(FREE)]
    every = [(path.name, one) for path in pages for one in sentences(path)]
    assert [one for one in every if len(re.findall(r"[^\W\d_]{2,}", one[1])) > LIMIT] == []


def on_record(study: str, figures: Iterable) -> tuple[Counter, Counter]:
    """The verdicts of claims, and of the evidence that counts; of "fig1.paper" and so on."""
    files = [ROOT / f"run/{study}/results/{figure}.claims.json" for figure in figures]
    claims = [claim for file in files for claim in json.loads(file.read_text())]
    pieces = [piece for claim in claims for piece in claim["evidence"] if piece["counts"]]
    return Counter(one["verdict"] for one in claims), Counter(one["verdict"] for one in pieces)


CODE, LAST = [f"code-fig{i}.paper" for i in range(4, 9)], [8, 9, 10]
QUICK = [f"fig{i}.quick" for i in (1, 3, *range(5, 11))]
HOLD, CROSS = "{holds} hold, {does not hold} do not hold", "{crosses} cross"
OPEN = "{not decided} are not decided"
QUOTED_COUNTS = [  # a study, its figures, and what its README says of their claims
    ("permk", ["fig2.paper"], f"Of the {{total}} claims {CROSS} and {OPEN}."),
    ("permk", [f"fig{i}.quick" for i in LAST], f"Of the {{total}} claims {HOLD} and {OPEN}."),
    ("permk", [f"fig{i}.paper" for i in LAST], "none of the {total} claims is decided"),
    ("saq", CODE, f"of {{total}} claims {HOLD} and {CROSS}."),
    ("cdadam", QUICK, f"Of {{total}} claims in Figures 1, 3 and 5 to 10 {HOLD}"),
]


def test_counts_of_verdicts_are_on_record():
    """The totals of claims, and of pieces of evidence, that READMEs quote."""

    def says(study, words, counts=None):
        for kind, count in (counts or {}).items():
            words = words.replace(f"{{{kind}}}", str(count))
        assert words in " ".join((ROOT / f"run/{study}/README.md").read_text().split()), words

    for study, figures, words in QUOTED_COUNTS:
        claims, _ = on_record(study, figures)
        says(study, words, claims | {"total": claims.total()})
    claims, _ = on_record("permk", [f"fig{i}.paper" for i in LAST])
    assert claims.keys() == {"not decided"}
    _, pieces = on_record("permk", ["fig1.paper"])
    says("permk", f"Of {pieces.total()} comparisons {HOLD}, {CROSS} and {OPEN}.", pieces)
    page = (ROOT / "run/permk/README.md").read_text()
    for figure in range(3, 8):
        _, pieces = on_record("permk", [f"fig{figure}.paper"])
        kinds = ("holds", "crosses", "tie", "does not hold", "not decided")
        row = re.search(rf"^\| {figure} \|(.*)\|$", page, re.M)
        cells = [re.match(r" *(\d*)", cell)[1] for cell in row[1].split("|")]
        assert cells == [str(pieces[kind] or "") for kind in kinds], figure
    assert on_record("marina", ["fig1.paper"])[0] == {"holds": 4 + 4 + 4, "not decided": 2}
    assert on_record("marina", ["fig1.quick"])[0] == {"holds": 4 + 4 + 2, "not decided": 4}
    says("marina", "sentences hold, as 4 claims, and so do 4 claims of this project")
    says("marina", "four hold and two are not decided there; at quick two hold and four are not")


def test_commits_on_record_are_in_the_history_or_named():
    """A README names the commits of runs on record that nobody can look up."""

    def git(*words, text=""):
        command = ["git", "-C", str(ROOT), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        return done.stdout.split("\n")

    if git("rev-parse", "--is-shallow-repository")[0] != "false":
        pytest.skip("there is no history")
    named = {}
    for file in ROOT.glob("run/*/results/*.provenance.json"):
        of = json.loads(file.read_text())
        readme = (file.parents[1] / "README.md").read_text()
        for commit in (*of["run_commits"], of["commit"]):
            name = commit.split()[0]
            named[name] = named.get(name, True) and name in readme
    kinds = zip(named, git("cat-file", "--batch-check", text="\n".join(named)), strict=False)
    lost = [name for name, kind in kinds if " commit " not in kind]
    assert [name for name in lost if not named[name]] == []


@pytest.fixture(scope="module")
def generated():
    """The texts that the site's pages have from the code, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs/extensions")
        module = pytest.importorskip("generated_tables")
        yield {name: write() for name, write in module.GENERATORS.items()}


def test_pages_hold_what_the_code_says(generated):
    from generated_tables import current

    pages = [path for path in ROOT.glob("docs/**/*.md") if "<!-- end -->" in path.read_text()]
    assert len(pages) >= 3
    stale = [path.name for path in pages if current(path.read_text()) != path.read_text()]
    assert not stale, f"{stale}: run python docs/extensions/generated_tables.py"


# What docstrings write for a terminal, and what the field's papers print.
TYPESET = Path(__file__).with_name("typeset.txt").read_text().splitlines()


# Markdown, and what the site's pages make of it.
PROSE = r"""
* A step of g_i takes 4 s: `x^k`'s C++, "x^0", $x^1$, *x^2*, |v|_inf
* A step of $g_i$ takes 4 s: `x^k`'s C++, "x^0", $x^1$, *x^2*, $\lVert v\rVert_{\infty}$
| \|grad f\|^2 of Theorem 2.1 | [A page of f](f_x.md#x_i), [pi](#pi) | grad_norm_sq |
| $\lVert \nabla f\rVert^2$ of Theorem 2.1 | [A page of $f$](f_x.md#x_i), [pi](#pi) | grad_norm_sq |
    y = x^2
    y = x^2
"""


def test_formulas_are_typeset(generated):
    from docstrings import typeset
    from prose import page

    lines = PROSE.strip("\n").splitlines()
    for written, printed in zip(lines[::2], lines[1::2], strict=True):
        assert page(written) == printed
    for written, printed in zip(TYPESET[::2], TYPESET[1::2], strict=True):
        assert typeset(written) == printed.strip()


def test_generated_pages(generated):
    """All names have a place, and all meanings are of keys."""
    from meanings import MEANINGS
    from names_and_keys import belongs, methods_of_the_package

    shown = "\n".join(generated.values())
    assert all(f"| `{key}` | " in shown for table in MEANINGS.values() for key in table)
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
    for name in compressors:
        assert f"### `{name}`\n" in generated["compressors"]
    for name, _ in methods_of_the_package():
        assert f"### `{name}`\n" in generated["methods"]
    for name in COMMANDS:
        assert f"## mpisim {name}\n" in generated["commands"]
        assert f"usage: mpisim {name}" in generated["commands"]


ASCII = re.compile(
    r"\w\^|\b\w_\w|\w_\{|[<>]=|\|\w|(?<![\w-])(?:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|lambda|mu|nu|xi"
    r"|rho|sigma|tau|phi|chi|omega|sqrt|grad|hess)\b"
)


@pytest.mark.parametrize("page", ["problems", "methods", "optimizers", "compressors"])
def test_no_formula_of_the_names_is_left_in_ascii(generated, page):
    """Outside of formulas, code and quoted values; and none is cut in the middle of a bracket."""
    formulas = re.findall(r"\$([^$]*)\$|```math\n(.*?)```", generated[page], re.S)
    for formula in map("".join, formulas):
        assert all(formula.count(a) == formula.count(b) for a, b in ("()", "[]", "{}")), formula
    assert page == "optimizers" or len(formulas) > 50
    rest = re.sub(r"```math\n.*?```|\$[^$]*\$|``.*?``|`[^`\n]*`", "", generated[page], flags=re.S)
    left = [line for line in rest.splitlines() if ASCII.search(line.replace("rand-tau", ""))]
    assert left == []


QUOTED = re.compile(
    r"""(?ms)^(```+|:::).*?^\1$|^(?:    |#|> ).*?$|\$[^$]*\$|`[^`]*`|"[^"]*"|\{w_t\}"""
)


def test_no_formula_of_the_prose_is_left_in_ascii(generated):
    from prose import page

    left = [
        f"{path.name}: {line}"
        for path in PAGES
        if path.parent != ROOT and path.name != "names.md"
        for line in QUOTED.sub("", page(path.read_text())).splitlines()
        if ASCII.search(line.replace("rand-tau", "").replace("grad_norm_sq", ""))
    ]
    assert left == []


def test_meanings_are_of_keys(generated):
    from meanings import MEANINGS

    shown = "\n".join(generated.values())
    keys = {key for table in MEANINGS.values() for key in table}
    assert [key for key in keys if f"| `{key}` | " not in shown] == []


def test_keys_of_a_method_have_its_defaults(generated):
    """A pair's defaults win over those of its estimator."""
    cd_adam = generated["methods"].partition("### `cd-adam`\n")[2].partition("\n### ")[0]
    start = next(line for line in cd_adam.splitlines() if line.startswith("| `start` |"))
    assert '| `"zero"` |' in start
    assert '`start` (`"zero"`)' in generated["method_names"]
