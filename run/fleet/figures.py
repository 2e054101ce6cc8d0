"""Seconds of a fleet: which method reaches 1e-4 first, by country, deadline and links."""

from mpisim.analysis.study import Figure, Grid, Grids

from . import drawn, hundred, winners

RUNS = (Grid("a9a"), Grid("million"), Grid("shadowheart"), Grid("shadowheart-million"))
MAP = (*RUNS[:2], Grid("shadowheart-map"))
BY_LINKS = "which method reaches 1e-4 first, by bandwidth and spread of the links"
BY_COUNTRY = "which method reaches 1e-4 first, by country and deadline"
ENDING = "rounds that end at a deadline, with all and with some of the clients"
ROUND = "a round of a hundred clients of the US, with a million weights"
LATE, MANY = Grid("deadline"), Grid("hundred")
FIGURES = [
    Figure("seconds", "seconds by country", Grids(RUNS), drawn.draw, drawn.claims),
    Figure("map", BY_LINKS, Grids(MAP), winners.draw_links, winners.claim_links),
    Figure("countries", BY_COUNTRY, Grids(RUNS), winners.draw_countries, winners.claim_countries),
    Figure("deadline", ENDING, LATE, drawn.draw_deadlines, drawn.claim_deadlines),
    Figure("hundred", ROUND, MANY, hundred.draw, hundred.claims),
]
