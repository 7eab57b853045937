"""Commands for developers of invoker, run by `python -m tools`; they are not part of the distribution."""
