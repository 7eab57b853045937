"""Reads what an annotation says of values: their bounds, patterns, rules and names."""

__all__: list[str] = []
