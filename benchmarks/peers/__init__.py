"""The same experiments in mpisim and in what a user would write instead (`make bench-peers`)."""
