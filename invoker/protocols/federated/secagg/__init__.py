"""The server's side of secure aggregation: four rounds that end with the sum of the updates, and with nothing else."""

__all__: list[str] = []
