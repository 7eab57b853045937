"""The measured functions on arrays; a separate module, since the other functions do not need numpy."""

import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from invoker import function

COST_S = 0.001
_device = threading.Lock()


def same(x: NDArray[Any]) -> NDArray[Any]:
    """Return the tensor, sync."""
    return x


async def asame(x: NDArray[Any]) -> NDArray[Any]:
    """Return the tensor, async."""
    return x


def double(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a new tensor of the same size."""
    return x * 2


def costly(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Imitate a device that takes a millisecond for any number of rows, and serves one caller at a time."""
    with _device:
        time.sleep(COST_S)
    return x * 2


@function(batch_max=64, batch_wait_ms=5)
def batched(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Call `costly` with the rows of several requests in one batch."""
    return costly(x)
