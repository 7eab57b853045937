"""Measurements: ``make bench`` runs the whole table; ``python -m benchmarks --help`` lists the flags that select a
part."""
