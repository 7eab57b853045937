"""Measurements: ``make bench`` runs the whole table, ``python -m benchmarks --help`` says how to run a part of it."""
