"""Tools that run in child processes: an echo, and two that exceed their limits; beside them, the echo of this
process."""

from __future__ import annotations

from benchmarks.tools import echo
from invoker import function

__all__ = ["eats", "echo", "isolated", "spins"]


@function(isolation="process")
def isolated(value: str) -> str:
    """Return the text, from a child process."""
    return value


@function(isolation="process", timeout_s=0.5)
def spins() -> int:
    """Spin for ever without reacting to a cancellation."""
    while True:
        pass


@function(isolation="process", memory_bytes=512 << 20)
def eats() -> int:
    """Allocate more and more memory."""
    held = []
    while True:
        held.append(bytes(16 << 20))
