"""The interfaces by which protocols are attached to the transports of their process."""

__all__: list[str] = []
