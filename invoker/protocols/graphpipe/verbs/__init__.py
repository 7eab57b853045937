"""The commands of GraphPipe on the command line."""

__all__: list[str] = []
