"""The command line's verbs of the tool bridge."""

__all__: list[str] = []
