"""Data sets: where they come from, how they are read and cached, and each worker's part.

`prepare` finds, parses and orders a LibSVM set, `load_shards` reads the rows of some workers, and
`load_images` reads an image set. `registry.tsv` lists the sets known by name.
"""

from mpisim.problems.data.images import load_images, load_pixels
from mpisim.problems.data.prepared import DataOptions, Prepared, prepare
from mpisim.problems.data.registry import DataFile, Dataset
from mpisim.problems.data.shards import Shards, load_shards

__all__ = [
    "DataFile",
    "DataOptions",
    "Dataset",
    "Prepared",
    "Shards",
    "load_images",
    "load_pixels",
    "load_shards",
    "prepare",
]
