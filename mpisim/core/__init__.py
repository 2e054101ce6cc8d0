"""What every room uses: errors, TOML schemas, random numbers, sums, files, protocols.

Importing it loads no other package, not even NumPy, which keeps `import mpisim` fast.
"""

from mpisim.core.errors import InputError, MpisimError, OutputError, WireError

VERSION = "1.0.0"  # of the package, in logs, in checkpoints and for pip
__all__ = ["VERSION", "InputError", "MpisimError", "OutputError", "WireError"]
