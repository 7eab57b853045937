"""The commands of Evergreen on the command line."""

__all__: list[str] = []
