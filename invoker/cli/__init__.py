"""The command line: serving, calling, talking, explaining."""

__all__: list[str] = []
