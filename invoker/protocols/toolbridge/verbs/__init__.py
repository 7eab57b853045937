"""The commands of the tool bridge on the command line."""

__all__: list[str] = []
