"""Generated documents as a LibSVM file: sparse rows of many features, unlike for each worker.

As in text, few words are frequent and most are rare. Each topic has its own frequent words, and the
rows of a topic follow one another, so that a contiguous split gives each worker a topic of its own.
The labels come from a planted linear model with noise.
"""

from __future__ import annotations

import numpy as np

ROWS, WORDS, LENGTH = 200, 20_000, 80  # documents of a topic, dictionary, words of a document
SPREAD = 1.5  # of the logarithm of a word's frequency over the topics
NOISE = 0.3  # of a margin, as a share of the margins' standard deviation


def libsvm(topics: int, seed: int = 0) -> str:
    """LibSVM text: ``topics`` times `ROWS` rows of norm 1, with labels +1 and -1."""
    draw = np.random.default_rng(seed)
    frequency = 1.0 / (10.0 + np.arange(WORDS))
    weights = draw.standard_normal(WORDS)
    rows = [
        _document(draw, frequency * np.exp(SPREAD * deviation))
        for deviation in draw.standard_normal((topics, WORDS))
        for _ in range(ROWS)
    ]
    margins = np.array([values @ weights[words] for words, values in rows])
    margins += NOISE * margins.std() * draw.standard_normal(len(rows))
    return "".join(_line(*row, margin) for row, margin in zip(rows, margins, strict=True))


def _document(draw: np.random.Generator, frequency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The words of a document, ascending, and their weights: counts, less for frequent words."""
    cumulative = np.cumsum(frequency)
    drawn = np.searchsorted(cumulative, draw.random(LENGTH) * cumulative[-1])
    words, counts = np.unique(drawn, return_counts=True)
    values = counts * np.log(cumulative[-1] / frequency[words])
    return words, values / np.linalg.norm(values)


def _line(words: np.ndarray, values: np.ndarray, margin: float) -> str:
    entries = " ".join(f"{j + 1}:{v:.4g}" for j, v in zip(words, values, strict=True))
    return f"{'+1' if margin > 0 else '-1'} {entries}\n"
