"""Claims of papers, judged from logs, written as JSON and printed as tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
