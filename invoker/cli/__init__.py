"""The command line, ``python -m invoker``."""

__all__: list[str] = []
