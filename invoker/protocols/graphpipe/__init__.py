"""GraphPipe: the same functions as tensor models (docs/reference/graphpipe.md)."""

__all__: list[str] = []
