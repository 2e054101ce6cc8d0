"""What `mpisim theory` prints: what the theorems guarantee for an experiment."""
