"""Attaches GraphPipe to the HTTP transport and to raw sockets, and joins requests into batches."""

__all__: list[str] = []
