"""`mpisim verify`: checks a log by itself, by its seed, and by running its experiment again."""
