"""`mpisim verify`: what a log says, against what can be worked out again."""
