from .analysis.api import Runs as Runs
from .analysis.api import guarantees as guarantees
from .analysis.api import load as load
from .analysis.api import plot as plot
from .analysis.api import table as table
from .comm.star import Star as Star
from .compressors.base import Compressor as Compressor
from .compressors.base import compressor as compressor
from .core.errors import Diverged as Diverged
from .core.errors import InputError as InputError
from .core.schema import require as require
from .methods.estimators.base import Estimator as Estimator
from .methods.estimators.base import estimator as estimator
from .methods.method_table import method as method
from .methods.optimizers import Optimizer as Optimizer
from .methods.optimizers import optimizer as optimizer
from .problems.base import Problem as Problem
from .problems.base import problem as problem
from .runs.api import Result as Result
from .runs.api import run as run
from .runs.api import sweep as sweep
from .runs.experiment import Experiment as Experiment
from .runs.metrics import Metric as Metric
from .runs.metrics import metric as metric
from .theory.setting import Setting as Setting
from .theory.setting import Step as Step

__version__: str
