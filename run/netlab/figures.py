"""A network that is really there: seconds, measured in network namespaces and modelled."""

from mpisim.analysis.study import Figure, Measurement

from . import fleet

WHAT = "root on Linux: seconds of clients whose links differ, and the model of `mpisim fleet`"
CASES = Measurement(
    f"{__package__}.lab", "logs/netlab-fleet", {"quick": len(fleet.CASES)}, fleet.read
)
FIGURES = [Figure("fleet", WHAT, CASES, fleet.draw, fleet.claims)]
