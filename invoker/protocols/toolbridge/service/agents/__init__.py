"""Runs agents on DSPy; only `react` and `models` import it, and they are loaded for the first agent."""

__all__: list[str] = []
