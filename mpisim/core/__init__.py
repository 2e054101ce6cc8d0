"""What every room stands on: errors, tables of an experiment, random numbers, sums in worker order.

`schema` makes frozen objects of tables, `rng` draws, `protocols` says what rooms hand down.
"""
