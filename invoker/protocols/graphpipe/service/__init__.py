"""Attaches GraphPipe to the transports: paths of the HTTP transport, bare sockets, batches."""

__all__: list[str] = []
