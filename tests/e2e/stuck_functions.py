"""A function that does not come back, in a thread."""

from __future__ import annotations

import time

from invoker import function


@function
def stuck(x: int) -> int:
    """Block for much longer than any drain."""
    time.sleep(600)
    return x
