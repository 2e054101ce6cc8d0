"""Methods: an estimator of the gradient over the network, and an optimizer that steps with it.

A method of one's own is an `Estimator` with the decorator `method`. `estimator` and `optimizer`
name the two halves, which can be paired at will.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
