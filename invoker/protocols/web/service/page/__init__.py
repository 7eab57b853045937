"""The page that a browser gets: its files, and the live numbers that it shows."""

__all__: list[str] = []
