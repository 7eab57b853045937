"""The gRPC transports: on grpcio's own completion queues, and on the public grpc.aio."""

__all__: list[str] = []
