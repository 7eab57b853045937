"""The commands of typed gRPC and Connect on the command line."""

__all__: list[str] = []
