"""The page of `mpisim plot` in a real browser, where there is one."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest

from mpisim.cli import main
from mpisim.runs.log.reader import read
from tests.comm.jobs import HANG_SECONDS

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
FLAGS += ("--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1240,1000")
_, *PARTS = re.split(
    r"^// == (\w+)\n", Path(__file__).with_name("browser.js").read_text(), flags=re.M
)
SCRIPTS = dict(zip(PARTS[::2], PARTS[1::2], strict=True))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no browser (apt-get install chromium)"),
]


@pytest.fixture
def report(make_log, tmp_path):
    """A report about MARINA with two seeds and DIANA on mushrooms, and MARINA on a9a."""
    first = make_log(rate=0.2)
    make_log(rate=0.1, seed=2), make_log(method="diana", rate=0.05)
    config = read(first).attrs["config"].replace("mushrooms", "a9a")
    make_log(attrs={"config": config}, drop=("grad_norm_sq",))
    page = tmp_path / "report.html"
    assert main(["plot", str(tmp_path), "-o", str(page)]) == 0
    return page


def browse(page, *flags, choices=""):
    command = [BROWSER, *FLAGS, *flags, f"--user-data-dir={page.parent / 'profile'}"]
    address = page.as_uri() + (f"#{choices}" if choices else "")
    job = subprocess.run([*command, address], capture_output=True, text=True, timeout=HANG_SECONDS)
    assert job.returncode == 0, job.stderr
    return job.stdout


def after(page, part, choices=""):
    """What this part of browser.js puts into ``found``."""
    errors, reader = (f"<script>\n{SCRIPTS[name]}</script>" for name in ("errors", "reader"))
    text = page.read_text().replace("<head>", f"<head>{errors}")
    text = text.replace("</body>", reader.replace("ACTIONS", SCRIPTS[part]) + "</body>")
    tried = page.with_name("tried.html")
    tried.write_text(text)
    shown = browse(tried, "--dump-dom", choices=choices)
    [content] = re.findall(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    result = json.loads(html.unescape(content))
    assert result.pop("errors") == [] and result.pop("loaded") == 0
    return result


def test_axes_and_problems_can_be_chosen(report):
    seen = after(report, "axes")
    mushrooms = "non-convex loss on mushrooms, 5 workers"
    assert seen["names"] == ["non-convex loss on a9a, 5 workers", mushrooms]
    assert seen["visible"] == [True, False] and seen["then"] == [False, True]
    assert seen["first"]["curves"] == []  # on a9a, whose log has no grad_norm_sq
    assert len(seen["pairs"]) == 8 * 3
    for pair, state in seen["pairs"].items():
        assert len(state["curves"]) == 2 and state["bands"] == 1, pair
        assert min(state["curves"]) >= 50 and state["ticks"] >= 6, pair
    assert seen["pairs"]["bits_up loss"]["labels"] == ["bits sent per worker", "f(xᵏ)"]
    modelled = seen["pairs"]["seconds@1gbit grad_norm_sq"]["labels"]
    assert modelled == ["modelled seconds, 1gbit", "‖∇f(xᵏ)‖²"]
    assert len(seen["linear"]["curves"]) == 2 and seen["linear"]["ticks"] >= 6


def test_points_are_shown_and_compared_with_pointer_and_keys(report):
    seen = after(report, "points", choices="problem=1&x=round&y=grad_norm_sq")
    hidden, text = seen["tip"]
    label, x, y = text.splitlines()
    assert not hidden and (label, x) == ("DIANA", "round: 50")
    assert float(y.rpartition(" ")[2]) == pytest.approx(np.exp(-2.5), rel=1e-3)
    assert seen["away"] and seen["ended"]
    first, last = seen["compared"].splitlines()[:3], seen["compared"].splitlines()[3:]
    assert first[0] == "DIANA" and last[0].startswith("MARINA") and first[1] == "round: 0"
    assert last[1] == "round: 50" and last[-3] == "second / first:"
    ratio = np.exp(-50 * 0.15)  # of the mean of log y over rates 0.1 and 0.2, to 1 at the start
    assert float(last[-1].rpartition(" ")[2]) == pytest.approx(ratio, rel=5e-3)
    lines = seen["keys"].splitlines()
    assert lines[:2] == ["DIANA", "round: 2"] and lines[3].startswith("MARINA")
    assert lines[4] == "round: 2"


def test_curves_can_be_hidden_and_links_keep_the_choices(report):
    seen = after(report, "legend", choices="problem=1&x=seconds&y=loss&logy=0")
    assert seen["start"]["labels"] == ["seconds", "f(xᵏ)"]
    assert [len(seen[name]["curves"]) for name in ("start", "fewer", "none", "all")] == [2, 1, 0, 2]
    assert seen["address"] == "#problem=1&x=seconds&y=mean_grad_norm_sq&logx=1&logy=1"
    words = dict(parse_qsl(seen["zoomed"][1:]))
    assert words["hide"] == "0" and len(words["view"].split(",")) == 4
    assert seen["shown"] == seen["again"] and len(seen["again"]["curves"]) == 1
    assert seen["full"] == seen["address"] + "&hide=0"
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", seen["file"])
    assert texts[-1].startswith("MARINA") and 'fill="#fff"' in seen["file"]
