"""What is timed, against what: each figure is a ratio to a bound or a peer in the same run."""
