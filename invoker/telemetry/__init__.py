"""Observes the engine: logs, metrics, watchdog. Sessions never call it."""

__all__: list[str] = []
