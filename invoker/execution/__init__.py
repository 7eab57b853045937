"""The drivers: they read frames, apply commands, run bodies and write frames."""

__all__: list[str] = []
