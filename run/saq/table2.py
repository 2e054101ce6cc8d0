"""Table 2: the sizes of the data, what is sent before round 0, and the bits of three codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import CLEAR, Claim, Evidence, decided, number, state
from mpisim.analysis.study import data_sets, quotes
from mpisim.runs.log.reader import Log

from . import schemes
from .schemes import BYTES, CODECS, each_round

# d, n and m, the rows of a worker, as Table 2 has them.
PAPER = {
    "german.numer": (24, 4, 250),
    "svmguide3": (21, 4, 310),
    "covtype": (54, 6, 145_253),
    "splice": (60, 6, 166),
    "w8a": (300, 8, 6_218),
    "a9a": (123, 8, 2_837),
}
PLUS = "DIANA+ (quant+)"
LABELS = ("DIANA (quant)", PLUS, "DIANA+ (block quant+)")
HEADS = {  # of the columns, with their shares of the figure's width
    "data": 0.15,
    "d": 0.07,
    "n": 0.06,
    "m": 0.1,
    "d, n, m in the paper": 0.2,
    "MB before round 0": 0.2,
    "of all MB": 0.2,
}
ROUNDS = 5000  # of the paper's runs
QUOTE = quotes(__file__)["negligible"]

Runs = dict[tuple[str, str, str], Log]


def runs(logs: Sequence[Log]) -> Runs:
    """{(data, label, codec): run}, data sets in the order of the figures; see `schemes.runs`."""
    groups = {}
    for key, group in schemes.runs(logs).items():
        for log in group:
            table = log.config["compressor"]
            groups[*key, str(table.get("inner", table).get("codec", ""))] = log
    return groups


def message_bits(logs: Sequence[Log]) -> list[float]:
    """Mean bits of a message after round 0, over the rounds that all runs have."""
    last = min(int(log.column("round")[-1]) for log in logs)
    sizes = []
    for log in logs:
        rounds, bits = log.column("round"), log.column("bits_up")
        sizes.append((bits[rounds == last][0] - bits[0]) / (last * log.n))
    return sizes


def draw(logs: Sequence[Log]) -> Any:
    """The table; below it the bits of a message in each code, for three compressors."""
    from matplotlib.figure import Figure

    groups = runs(logs)
    names = data_sets(groups)
    figure = Figure(figsize=(11, 2.9 + 0.35 * len(names)), layout="constrained")
    places = figure.add_gridspec(2, len(LABELS), height_ratios=(0.35 + 0.28 * len(names), 2.2))
    rounds = max((int(log.column("round")[-1]) for log in groups.values()), default=0)
    heads = [head + f", {rounds} rounds" * (head == "of all MB") for head in HEADS]
    top, cells = figure.add_subplot(places[0, :]), [_row(groups, name) for name in names]
    panels.table(top, cells, 1.25, colLabels=heads, colWidths=list(HEADS.values()))
    for column, scheme in enumerate(LABELS):
        _bars(figure.add_subplot(places[1, column]), groups, names, scheme)
    looks = panels.colours_of(zip(CODECS.values(), style.COLOURS, strict=False), 6)
    panels.legend(figure, looks, "SAQ, Table 2, and the bits of a message in three codes")
    return figure


def _first(groups: Runs, name: str) -> Log:
    return next(log for (data, _, _), log in groups.items() if data == name)


def _row(groups: Runs, name: str) -> list[str]:
    sizes = [f"{size:,}" for size in _sizes(_first(groups, name))]
    paper = ", ".join(f"{size:,}" for size in PAPER[name]) if name in PAPER else "not there"
    plus = groups.get((name, PLUS, "elias"))
    if plus is None:
        return [name, *sizes, paper, "", ""]
    sent = BYTES.values(plus)
    return [name, *sizes, paper, number(sent[0]), f"{sent[0] / sent[-1]:.0%}"]


def _sizes(log: Log) -> tuple[int, int, int]:
    """d, n and the most rows that a worker has."""
    return int(log.attrs["dimension"]), log.n, int(log.workers["rows"].max())


def _bars(panel: Any, groups: Runs, names: list[str], scheme: str) -> None:
    here = [name for name in names if all((name, scheme, c) in groups for c in CODECS)]
    bits = np.array([message_bits([groups[name, scheme, c] for c in CODECS]) for name in here])
    for i, colour in zip(range(len(CODECS)), style.COLOURS, strict=False):
        where = np.arange(len(here)) + (i - 1) * 0.27
        bars = panel.bar(where, bits[:, i] if here else [], 0.27, color=colour)
        panel.bar_label(bars, fmt="%.0f", fontsize=5.5, padding=1)
    panel.set_xticks(range(len(here)), here, fontsize=7, rotation=12)
    panel.set_axisbelow(True)
    panel.set_title(scheme)
    panel.set_ylabel("bits of a message")
    panel.grid(visible=False, axis="x")


def claims(logs: Sequence[Log]) -> Iterator[Claim]:
    """The data is that of Table 2, and what is sent first is negligible in long runs (A.3, B.1)."""
    groups = runs(logs)
    names = data_sets(groups)
    sizes = [_same_sizes(name, _first(groups, name)) for name in names if name in PAPER]
    yield state("d, n and m are those of the table", "", "SAQ, Table 2", sizes)
    plus = {name: groups[key] for name in names if (key := (name, PLUS, "elias")) in groups}
    text = f"{PLUS}: what is sent before round 0 is negligible in megabytes of {ROUNDS:,} rounds"
    evidence = [_negligible(name, log) for name, log in plus.items()]
    yield state(text, QUOTE, "SAQ, Appendix A.3", evidence)


def _same_sizes(name: str, log: Log) -> Evidence:
    text = "d = {:,}, n = {:,}, m = {:,}"
    sizes, paper = _sizes(log), PAPER[name]
    measured = text.format(*sizes) + (f", not {text.format(*paper)}" if sizes != paper else "")
    return Evidence(name, measured, decided(sizes == paper))


def _negligible(name: str, log: Log) -> Evidence:
    """The share in a run as long as the paper's: after round 0 all rounds cost the same.

    It is negligible where a comparison would not see it: all of it is within 3% of the rest.
    """
    before, each = float(BYTES.values(log)[0]), each_round(log, BYTES)
    total, enough = before + ROUNDS * each, before / (CLEAR - 1) / each
    text = f"{before / total:.1%} of {number(total)} megabytes"
    numbers = {"share": before / total, "negligible_from_round": enough}
    text += f"; negligible from round {enough:,.0f} on"
    return Evidence(name, text, decided(enough <= ROUNDS), numbers)
