"""A network that is really there: seconds, measured in network namespaces and modelled."""

from mpisim.analysis.study import Figure

from . import crossover
from .lab import OnNetworks

TITLE = "root on Linux: seconds to an accuracy at several speeds: where compression pays"
FIGURES = [Figure("crossover", TITLE, OnNetworks("crossover"), crossover.draw, crossover.claims)]
