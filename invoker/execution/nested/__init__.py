"""Calls of a function by another one: `scope` decides where the callee runs; `inline` and `inside` run it."""

__all__: list[str] = []
