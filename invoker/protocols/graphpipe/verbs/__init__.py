"""What the command line offers of GraphPipe."""

__all__: list[str] = []
