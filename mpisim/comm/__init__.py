"""The star network: which rank holds which workers, what they exchange, and what it costs.

Estimators see the network as a `Star`. A `Ledger` counts its bits, a `Clock` its seconds.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
