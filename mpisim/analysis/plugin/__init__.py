"""Plugins: templates for `mpisim new`, and what `mpisim check` checks.

The package's own tests run the same checks on its compressors and problems. They are above the
rooms whose parts they check, because a part must also keep its promises in whole runs.
"""
