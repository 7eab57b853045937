"""What the victim of `tests.attack.steady` serves: the functions of `tests.attack.outliving`, and some that time out.

Python's collector runs, as it does for users.
"""

from __future__ import annotations

import asyncio
import gc
import time

from invoker import function
from tests.attack.outliving import (
    aecho,
    aechoes,
    agive,
    agives,
    atensor,
    echo,
    echoes,
    give,
    gives,
    iecho,
    iechoes,
    tensor,
)

__all__ = [
    "aecho",
    "aechoes",
    "agive",
    "agives",
    "alate",
    "atensor",
    "echo",
    "echoes",
    "give",
    "gives",
    "iecho",
    "iechoes",
    "late",
    "tensor",
]

gc.enable()  # `outliving` has turned it off


@function(timeout_s=0.1)
def late(data: bytes) -> bytes:
    """Takes longer than it may."""
    time.sleep(0.3)
    return data


@function(timeout_s=0.1)
async def alate(data: bytes) -> bytes:
    """The same on the event loop."""
    await asyncio.sleep(0.3)
    return data
