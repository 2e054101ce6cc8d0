"""python -m mpisim"""

from mpisim.cli import console

console()
