"""How long a payload may be that an event loop decodes itself; a longer one is decoded in a thread meanwhile.

Theory. A megabyte of MessagePack, of text or of tensors takes an event loop some milliseconds. JSON takes it up to a
tenth of a second, and a few codecs take even longer for their bytes, since they inflate, or call Python for each value.
Codecs register here the length from which a thread does their work. So code that decodes on a loop asks one place, for
every media type.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

LOOP_BYTES: Final = 1 << 20
"""Payloads of this size and more are decoded in a thread, whatever their media type is."""

_OWN: Final[dict[str, int]] = {}


def limit_on_loop(media_types: Iterable[str], size: int) -> None:
    """Have payloads of some media types decoded in a thread from this many bytes on."""
    _OWN.update(dict.fromkeys(media_types, min(size, LOOP_BYTES)))
    loop_bytes.cache_clear()


@lru_cache(maxsize=1024)
def loop_bytes(media_type: str) -> int:
    """How many bytes of a media type, given with or without parameters, are too many for a loop."""
    essence = media_type.partition(";")[0].strip().lower()
    if (own := _OWN.get(essence)) is None and essence.endswith("+json"):
        own = _OWN.get("application/json")
    return LOOP_BYTES if own is None else own
