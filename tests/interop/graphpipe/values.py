"""Arrays as JSON, bit by bit, between a test and a program in an environment of its own; both import this file.

A value is ``{"dtype", "shape", "data"}`` with the bytes of the elements in base64. Arrays of objects have a list of
elements for data: base64 of bytes, or ``{"text": TEXT}``.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np


def packed(array: Any) -> dict[str, Any]:
    """An array, ready for JSON."""
    array = np.asarray(array)
    if array.dtype.kind == "O":
        data: Any = [{"text": one} if isinstance(one, str) else _armoured(one) for one in array.reshape(-1)]
    else:
        data = _armoured(array.tobytes())
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def unpacked(value: dict[str, Any]) -> Any:
    """The array that was packed."""
    if value["dtype"] == "|O":
        array = np.empty(len(value["data"]), object)
        array[:] = [one["text"] if isinstance(one, dict) else base64.b64decode(one) for one in value["data"]]
    else:
        array = np.frombuffer(base64.b64decode(value["data"]), value["dtype"])
    return array.reshape(value["shape"])


def _armoured(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
