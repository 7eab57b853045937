"""The tool bridge's place at the doors."""

__all__: list[str] = []
