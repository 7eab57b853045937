"""The functions of arrays that are measured; apart from the others, whose servers need no numpy."""

import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from invoker import function

COST_S = 0.001
_device = threading.Lock()


def same(x: NDArray[Any]) -> NDArray[Any]:
    """The tensor that came, sync."""
    return x


async def asame(x: NDArray[Any]) -> NDArray[Any]:
    """The tensor that came, async."""
    return x


def double(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """A new tensor of the same size."""
    return x * 2


def costly(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """What a device does in a millisecond for however many rows, for one caller at a time."""
    with _device:
        time.sleep(COST_S)
    return x * 2


@function(batch_max=64, batch_wait_ms=5)
def batched(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same for rows of several requests."""
    return costly(x)
