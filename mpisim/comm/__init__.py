"""The star: who holds which workers, what they exchange, and what it costs.

`Star` is the network as an estimator sees it, `Ledger` counts its bits, `Clock` its seconds.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
