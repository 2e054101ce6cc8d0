"""Data sets: where they come from, how they are read and cached, and each worker's part.

`prepare` finds, parses and orders a LibSVM set, `load_shards` reads the rows of some workers, and
`load_images` reads an image set. `registry.tsv` lists the sets known by name.
"""

from mpisim.problems.data.content import load_images, load_pixels
from mpisim.problems.data.find import DataFile, Dataset
from mpisim.problems.data.prepared import DataOptions, Prepared, Shards, load_shards, prepare

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
