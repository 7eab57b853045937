"""Moves: reads frames, applies commands, runs bodies, writes frames."""

__all__: list[str] = []
