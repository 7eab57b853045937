"""The aggregation functions of the populations that the federated chapters of the conformance suite ask for.

``python -m invoker functions/conformance_federated.toml --federated-peer-sessions 1000`` serves them. What others have
to provide, in any language, is said in ``docs/reference/conformance.md``.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator

from invoker import Message


def zero() -> bytes:
    """Where sums begin."""
    return b"0"


def nothing() -> bytes:
    """No frames were there yet."""
    return b"[]"


def megabytes() -> bytes:
    """Five of them."""
    return bytes(range(256)) * 20480


def add(updates: Iterator[bytes], model: bytes) -> bytes:
    """The sum of all updates so far, as decimal text."""
    return str(int(model) + sum(int(one) for one in updates)).encode()


def slow(updates: Iterator[bytes], model: bytes) -> bytes:
    """The same, with a pause for each update."""
    total = int(model)
    for one in updates:
        time.sleep(0.1)
        total += int(one)
    return str(total).encode()


def last(updates: Iterator[bytes]) -> bytes:
    """The only update, as it came."""
    (update,) = updates
    return update


def frames(updates: Iterator[Message[bytes]]) -> bytes:
    """What came, as JSON: of each frame its media type, its headers and its payload."""
    told = [
        {"type": one.media_type, "headers": dict(one.headers), "payload": base64.b64encode(one.payload).decode()}
        for one in updates
    ]
    return json.dumps(told).encode()


def moody(updates: Iterator[bytes], model: bytes) -> Iterator[bytes]:
    """The sum, unless an update says what else to do."""
    total = int(model)
    for one in updates:
        if one == b"raise":
            raise ValueError("an update asks for that")
        if one == b"early":
            yield b"-1"
            return
        if one == b"none":
            return
        if one == b"twice":
            yield b"-2"
            yield b"-3"
            return
        if one == b"sleep":
            time.sleep(3.0)
        else:
            total += int(one)
    yield str(total).encode()
