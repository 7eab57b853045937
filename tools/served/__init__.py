"""The two catalogues whose calls `python -m tools gates` counts."""
