"""Seconds of a fleet: which method is there first, by country, deadline, bandwidth and spread."""

from mpisim.analysis.study import Figure, Grid, Grids

from . import deadline, drawn, winners

RUNS = (Grid("a9a"), Grid("million"), Grid("shadowheart"), Grid("shadowheart-million"))
FIGURES = [
    Figure("seconds", "seconds by country", Grids(RUNS), drawn.draw, drawn.claims),
    Figure(
        "map",
        "which method is there first, by bandwidth and spread of the links",
        Grids((*RUNS[:2], Grid("shadowheart-map"), Grid("shadowheart-million-map"))),
        winners.draw,
        winners.claims,
    ),
    Figure(
        "deadline",
        "rounds that end at a deadline, with all and with some of the clients",
        Grid("deadline"),
        deadline.draw,
        deadline.claims,
    ),
]
