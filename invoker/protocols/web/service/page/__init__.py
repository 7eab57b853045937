"""The page of the HTTP transport for browsers: its files, and the numbers that it shows."""

__all__: list[str] = []
