"""What every room uses: errors, tables of the experiment, random numbers, sums, files, protocols.

Importing it loads no other package: `mpisim --help` must not wait for NumPy.
"""

from mpisim.core.errors import InputError, MpisimError, OutputError, WireError

__all__ = ["InputError", "MpisimError", "OutputError", "WireError"]
