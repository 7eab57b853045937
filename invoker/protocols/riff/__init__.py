"""riff: streaming calls over gRPC."""

__all__: list[str] = []
