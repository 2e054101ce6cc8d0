"""Studies: a folder with grids of runs and a list of figures, drawn from logs, with claims."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
