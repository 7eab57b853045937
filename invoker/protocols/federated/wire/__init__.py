"""The wire of federated compute, for server and client: names, times, and the primitives of secure aggregation."""

__all__: list[str] = []
