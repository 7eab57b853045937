"""Samples, with one idea per file. Each runs with ``python -m invoker functions.NAME:fn``."""
