"""Functions as typed gRPC services: their signatures as .proto files, and calls of generated clients."""

__all__: list[str] = []
