from .estimators import ESTIMATORS as ESTIMATORS
from .estimators import Estimator as Estimator
from .estimators import estimator as estimator
from .method_table import METHODS as METHODS
from .method_table import method as method
from .optimizers import OPTIMIZERS as OPTIMIZERS
from .optimizers import Optimizer as Optimizer
from .optimizers import optimizer as optimizer
