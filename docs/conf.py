"""Sphinx's settings for `make docs`.

Sources are Markdown files where they are: docs/ and the READMEs of the studies in run/. The source
folder is the repository, so that links between pages are the same on the site and in a checkout.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
from mpisim.core import VERSION

project, author, release = "mpisim", "The mpisim authors", VERSION
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "generated_tables",
    "mathml",
    "prose",
]

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "run/*/README.md",
    "run/*/results/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "benchmarks", "build", "datasets", "figures", "logs", "mpisim", "tests"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "html_image"]
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"
myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebook has its outputs: tools/notebook.py

smartquotes = False  # quotes belong to values of keys
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False

html_theme = "furo"
html_title = f"mpisim {VERSION}"
html_static_path = ["static"]
html_css_files = ["mpisim.css"]
html_js_files = ["tables.js"]
html_extra_path = ["root"]  # the site's first page is docs/index.html
html_copy_source = html_show_sourcelink = html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
templates_path: list[str] = []
