"""Evergreen sessions: nodes, chunks and actions (docs/reference/evergreen.md)."""
