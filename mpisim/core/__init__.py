"""What every room uses: errors, tables of the experiment, random numbers, sums, files, protocols.

Importing it loads no other package, not even NumPy, so that `import mpisim` takes no time.
"""

from mpisim.core.errors import InputError, MpisimError, OutputError, WireError

__all__ = ["InputError", "MpisimError", "OutputError", "WireError"]
