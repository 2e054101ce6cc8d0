"""Runs docs/tutorial/notebook.ipynb and writes its outputs into it: text and pictures.

Usage: .venv/bin/python -m tools.notebook

Needs no Jupyter. The same code gives the same text, seconds apart.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs/tutorial/notebook.ipynb"


def execute(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run in the current folder."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.close("all")  # figures of others
    names: dict[str, Any] = {"__name__": "__main__"}
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(codes, 1):
        text = io.StringIO()
        with (
            warnings.catch_warnings(action="ignore", category=UserWarning),  # of plt.show
            contextlib.redirect_stdout(text),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            exec("".join(cell["source"]), names)
        cell["execution_count"] = number
        cell["outputs"] = [_text(text.getvalue())] if text.getvalue() else []
        cell["outputs"] += [_picture(plt.figure(i)) for i in plt.get_fignums()]
        plt.close("all")
    return notebook


def _text(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": text}


def _picture(figure: Any) -> dict[str, Any]:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=100)
    png = base64.b64encode(content.getvalue()).decode() + "\n"
    return {"data": {"image/png": png}, "metadata": {}, "output_type": "display_data"}


def main() -> int:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        written = execute(notebook)
    NOTEBOOK.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
