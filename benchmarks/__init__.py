"""What is timed, against what: every figure is a ratio to a lower bound or a peer in the same run."""
