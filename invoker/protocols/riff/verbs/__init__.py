"""The commands of riff on the command line."""

__all__: list[str] = []
