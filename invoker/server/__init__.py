"""The serving process: its server, its workers and their supervisor, and how it ends."""

__all__: list[str] = []
