"""A network that is really there: seconds, measured in network namespaces and modelled."""

from mpisim.analysis.study import Figure, Measurement

from . import crossover, fleet
from .lab import OnNetworks

CROSSOVER = "root on Linux: seconds to an accuracy at several speeds: where compression pays"
FLEET = "root on Linux: seconds of clients whose links differ, and the model of `mpisim fleet`"
CASES = Measurement(
    f"{__package__}.lab", "logs/netlab-fleet", {"quick": len(fleet.CASES)}, fleet.read
)
FIGURES = [
    Figure("crossover", CROSSOVER, OnNetworks("crossover"), crossover.draw, crossover.claims),
    Figure("fleet", FLEET, CASES, fleet.draw, fleet.claims),
]
