"""Reads the constraints on values in annotations: bounds, patterns, rules and names."""

__all__: list[str] = []
