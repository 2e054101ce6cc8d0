"""Data sets: where they come from, how they are read and cached, and each worker's part.

`prepared` finds, parses and orders a LibSVM set, and reads the rows of some workers. `content`
reads an image set. `registry.tsv` lists the sets known by name.
"""
