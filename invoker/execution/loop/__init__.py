"""Drives conversations on an asyncio loop, whose callbacks bring their frames."""

__all__: list[str] = []
