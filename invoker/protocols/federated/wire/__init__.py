"""The wire format of federated compute: names, times, and the primitives of secure aggregation."""

__all__: list[str] = []
