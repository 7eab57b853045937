"""An echo in the process, and tools in child processes: an echo, and two that pass their limits."""

from __future__ import annotations

from benchmarks.tools import echo
from invoker import function

__all__ = ["eats", "echo", "isolated", "spins"]


@function(isolation="process")
def isolated(value: str) -> str:
    """The text itself, from a child process."""
    return value


@function(isolation="process", timeout_s=0.5)
def spins() -> int:
    """Hears nothing, for ever."""
    while True:
        pass


@function(isolation="process", memory_bytes=512 << 20)
def eats() -> int:
    """More and more memory."""
    held = []
    while True:
        held.append(bytes(16 << 20))
