"""The riff protocol: calls of functions whose inputs and outputs are streams, over gRPC."""

__all__: list[str] = []
