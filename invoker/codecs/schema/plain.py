"""Converts values to JSON's own, for the defaults, constants and examples in a schema."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from invoker.codecs.typed import enc_hook

NOTHING: Any = msgspec.UNSET
"""Stands for a value that JSON does not have."""

_LONGEST = 4096
"""The most characters of a value that is shown."""


def plain_value(value: Any) -> Any:
    """The value in dicts, lists, text and numbers; `NOTHING` if JSON has no such value, or it is long."""
    try:
        made = msgspec.to_builtins(value, enc_hook=enc_hook, str_keys=True)
        text = json.dumps(made, allow_nan=False)
    except Exception:  # noqa: BLE001 - a value of the author's may raise anything when it is read
        return NOTHING
    return json.loads(text) if len(text) <= _LONGEST else NOTHING
