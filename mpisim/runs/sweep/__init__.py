"""Many experiments from one file, each run once: `mpisim sweep` and what others need of it."""
