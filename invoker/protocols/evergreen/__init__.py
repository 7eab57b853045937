"""Evergreen sessions: nodes, chunks and actions (docs/reference/evergreen.md)."""

__all__: list[str] = []
