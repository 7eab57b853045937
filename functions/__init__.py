"""Samples, one idea a file. Each runs with ``python -m invoker functions.NAME:fn``."""
