"""Garbage at both doors of a real server, while good calls go on beside it."""
