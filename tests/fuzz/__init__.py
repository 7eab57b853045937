"""Garbage at both transports of a real server, while good calls go on beside it."""
