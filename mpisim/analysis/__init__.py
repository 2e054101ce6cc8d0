"""What is read off logs: curves, plots, tables, tuning, claims, a link model, and verification.

`guarantees` holds what the theorems say about an experiment before it runs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
