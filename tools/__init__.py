"""What developers of invoker run by `python -m tools`; no part of the distribution."""
