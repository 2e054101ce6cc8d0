"""Seconds of a fleet: which method reaches 1e-4 first, by country, deadline and links."""

from mpisim.analysis.study import Figure, Grid, Grids

from . import drawn, hundred, winners

RUNS = (Grid("a9a"), Grid("million"), Grid("shadowheart"), Grid("shadowheart-million"))
MAP = (*RUNS[:2], Grid("shadowheart-map"))
FIGURES = [
    Figure("seconds", "seconds by country", Grids(RUNS), drawn.draw, drawn.claims),
    Figure(
        "map",
        "which method reaches 1e-4 first, by bandwidth and spread of the links",
        Grids(MAP),
        winners.draw_links,
        winners.claim_links,
    ),
    Figure(
        "countries",
        "which method reaches 1e-4 first, by country and deadline",
        Grids(RUNS),
        winners.draw_countries,
        winners.claim_countries,
    ),
    Figure(
        "deadline",
        "rounds that end at a deadline, with all and with some of the clients",
        Grid("deadline"),
        drawn.draw_deadlines,
        drawn.claim_deadlines,
    ),
    Figure(
        "hundred",
        "a round of a hundred clients of the US, with a million weights",
        Grid("hundred"),
        hundred.draw,
        hundred.claims,
    ),
]
