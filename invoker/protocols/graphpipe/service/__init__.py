"""GraphPipe's place at the doors: paths of the HTTP door, bare sockets, batches."""

__all__: list[str] = []
