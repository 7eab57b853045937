"""Drives conversations on an asyncio loop, whose callbacks deliver their frames."""

__all__: list[str] = []
