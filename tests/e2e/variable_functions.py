"""Tools for tests/e2e/test_shared_state.py."""

from __future__ import annotations

import os

from invoker import Context


def add(step: int, ctx: Context) -> list[int]:
    """Add to the variable ``sum``, and tell it and the process."""
    total = ctx.variables.get("sum", 0) + step
    ctx.variables.set("sum", total)
    return [total, os.getpid()]
