"""The command line's verbs of GraphPipe."""

__all__: list[str] = []
