"""Runs: an experiment is read, set up, run round by round, logged, and resumed after a stop.

`Experiment` holds the specs of a run, `Setup` its bound objects. A column of one's own is a
`Metric` with the decorator `metric`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
