"""Data sets: where they come from, how they are read, cached and dealt to the workers."""
