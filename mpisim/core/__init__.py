"""What every room uses: errors, TOML schemas, random numbers, sums, files, protocols.

Importing it loads no other package, not even NumPy, which keeps `import mpisim` fast.
"""

from mpisim.core.errors import InputError, MpisimError, OutputError, WireError

__all__ = ["InputError", "MpisimError", "OutputError", "WireError"]
