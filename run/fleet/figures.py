"""Seconds of a fleet: which method reaches 1e-4 first, by country, deadline and links."""

from mpisim.analysis.study import Figure, Grid, Grids

from . import drawn, hundred, winners

RUNS = (Grid("a9a"), Grid("million"), Grid("shadowheart"), Grid("shadowheart-million"))
RUN, MAP = Grids(RUNS), Grids((*RUNS[:2], Grid("shadowheart-map")))
BY_LINKS = "which method reaches 1e-4 first, by bandwidth and spread of the links"
BY_COUNTRY = "which method reaches 1e-4 first, by country and deadline"
LATE = "rounds that end at a deadline, with all and with some of the clients"
HUNDRED = "a round of a hundred clients of the US, with a million weights"
FIGURES = [
    Figure("seconds", "seconds by country", RUN, drawn.draw, drawn.claims),
    Figure("map", BY_LINKS, MAP, winners.draw_links, winners.claim_links),
    Figure("countries", BY_COUNTRY, RUN, winners.draw_countries, winners.claim_countries),
    Figure("deadline", LATE, Grid("deadline"), drawn.draw_deadlines, drawn.claim_deadlines),
    Figure("hundred", HUNDRED, Grid("hundred"), hundred.draw, hundred.claims),
]
