"""GraphPipe's place at the doors: paths of the HTTP door, bare sockets, batches."""
