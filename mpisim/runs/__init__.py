"""Runs: read an experiment, set it up, run it round by round, log it, resume it after a stop.

`Experiment` holds the specs of a run, `Setup` its bound objects. New columns are a `Metric` with
the decorator `metric`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
