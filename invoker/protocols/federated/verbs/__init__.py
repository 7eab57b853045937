"""The commands of federated compute on the command line."""

__all__: list[str] = []
