"""What the papers prove: constants of compressors and problems, step sizes, rates and tables.

A theorem takes a `Setting` and gives a `Step`. Each compressor fills in its `CompressorConstants`.
"""

from mpisim.theory.compression import CompressorConstants
from mpisim.theory.setting import Setting, Step, setting_of
from mpisim.theory.smoothness import Constants, constants

__all__ = ["CompressorConstants", "Constants", "Setting", "Step", "constants", "setting_of"]
