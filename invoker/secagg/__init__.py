"""Secure aggregation: the cryptography that devices and the aggregator share. It knows neither sessions nor rounds."""

__all__: list[str] = []
