"""An echo in the process, and one in a child process."""

from __future__ import annotations

from benchmarks.tools import echo
from invoker import function

__all__ = ["echo", "isolated"]


@function(isolation="process")
def isolated(value: str) -> str:
    """The text itself, from a child process."""
    return value
