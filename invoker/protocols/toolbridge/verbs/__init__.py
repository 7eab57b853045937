"""What the command line offers of the tool bridge."""

__all__: list[str] = []
