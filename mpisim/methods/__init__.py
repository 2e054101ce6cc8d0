"""Methods: an estimator of the gradient over the network, and an optimizer that steps with it.

A new method is an `Estimator` with the decorator `method`. The decorators `estimator` and
`optimizer` name the two halves, which an experiment can pair freely.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
