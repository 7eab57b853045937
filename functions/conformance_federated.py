"""The aggregation functions of the populations that the federated chapters of the conformance suite use.

``python -m invoker functions/conformance_federated.toml --federated-peer-sessions 1000`` serves them.
``docs/reference/conformance.md`` specifies them, so that they can be written in any language.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator

from invoker import Message


def zero() -> bytes:
    """The first checkpoint of sums."""
    return b"0"


def nothing() -> bytes:
    """The first checkpoint of `frames`: no frames."""
    return b"[]"


def megabytes() -> bytes:
    """A first checkpoint of five megabytes."""
    return bytes(range(256)) * 20480


def add(updates: Iterator[bytes], model: bytes) -> bytes:
    """The sum of all updates so far, as decimal text."""
    return str(int(model) + sum(int(one) for one in updates)).encode()


def slow(updates: Iterator[bytes], model: bytes) -> bytes:
    """The sum, with a pause for each update."""
    total = int(model)
    for one in updates:
        time.sleep(0.1)
        total += int(one)
    return str(total).encode()


def last(updates: Iterator[bytes]) -> bytes:
    """Return the only update unchanged."""
    (update,) = updates
    return update


def frames(updates: Iterator[Message[bytes]]) -> bytes:
    """Return the frames as JSON: the media type, headers and payload of each."""
    told = [
        {"type": one.media_type, "headers": dict(one.headers), "payload": base64.b64encode(one.payload).decode()}
        for one in updates
    ]
    return json.dumps(told).encode()


def moody(updates: Iterator[bytes], model: bytes) -> Iterator[bytes]:
    """The sum, unless an update asks for a failure."""
    total = int(model)
    for one in updates:
        if one == b"raise":
            raise ValueError("an update requests a failure")
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
