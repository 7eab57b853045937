"""The lengths of payloads that the event loop decodes itself; longer payloads are decoded in a thread.

Theory. Decoding a megabyte of MessagePack, text or tensors takes some milliseconds. A megabyte of JSON takes up to a
tenth of a second, and a few codecs take even longer, since they inflate, or call Python for each value. So each codec
registers here the length from which its payloads are decoded in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

LOOP_BYTES: Final = 1 << 20
"""Payloads of at least this many bytes are decoded in a thread, whatever their media type is."""

_OWN: Final[dict[str, int]] = {}


def limit_on_loop(media_types: Iterable[str], size: int) -> None:
    """Decode payloads of some media types in a thread if they have at least ``size`` bytes."""
    _OWN.update(dict.fromkeys(media_types, min(size, LOOP_BYTES)))
    loop_bytes.cache_clear()


@lru_cache(maxsize=1024)
def loop_bytes(media_type: str) -> int:
    """How many bytes are too many for the loop; the media type may have parameters."""
    essence = media_type.partition(";")[0].strip().lower()
    if (own := _OWN.get(essence)) is None and essence.endswith("+json"):
        own = _OWN.get("application/json")
    return LOOP_BYTES if own is None else own
