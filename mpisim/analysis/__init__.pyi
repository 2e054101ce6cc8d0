from .claims import Claim as Claim
from .curves import Axis as Axis
from .link_model import Links as Links
from .run_groups import RunGroup as RunGroup
from .run_groups import group_runs as group_runs
from .tune import best as best
