"""Derives the id of a session and the keys of masks, in the same way on all devices (F-096)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from invoker.protocols.federated.wire.packing import bit_width

MASK_PURPOSE: Final = b"\x02"


def session_id(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The id of a session, 32 bytes.

    Args:
        pairs: The noise key and the encryption key of each device, in order; both are empty for a dead device.
    """
    found = hashlib.sha256()
    for noise, enc in pairs:
        # The second size should be that of ``enc``; but this mistake is a part of the protocol.
        size = len(noise).to_bytes(4, "big")
        found.update(size + noise + size + enc)
    return found.digest()


def mask_key(key: bytes, *, session: bytes, modulus: int, length: int, name: str) -> bytes:
    """The key of the mask for one vector, 32 bytes.

    Args:
        key: The key on which two devices have agreed, or the key of a device's own mask.
        session: The id of the session, 32 bytes.
        modulus: The modulus of the vector, from 2 to 2^62.
        length: The length of the vector, in elements.
        name: The name of the vector.
    """
    bits = bit_width(modulus)
    told = session + bits.to_bytes(4, "big") + length.to_bytes(4, "big") + name.encode()
    # the first number is the bits of a sample, which equal the bits of an element
    return hashlib.sha256(bits.to_bytes(4, "big") + key + MASK_PURPOSE + len(told).to_bytes(4, "big") + told).digest()
