"""Observes the engine: logs, health, metrics, the watchdog. Sessions never call it."""

__all__: list[str] = []
