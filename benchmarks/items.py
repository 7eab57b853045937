"""What the streams of HTTP and WebSocket carry, byte for byte: our servers, the peers and the client agree on it.

No import of ours stands here, so that a peer's environment can do without invoker.
"""

from __future__ import annotations

import json
from typing import Any

TEXT = "one token of a stream"
SSE, NDJSON = "text/event-stream", "application/x-ndjson"
END_EVENT = b"event: end\ndata: {}\n\n"


def item(number: int) -> dict[str, Any]:
    """The value that a function yields."""
    return {"n": number, "text": TEXT}


def encoded(value: Any) -> bytes:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def streamed(form: str, count: int) -> bytes:
    """The whole body of a stream of so many items."""
    if form == NDJSON:
        return b"".join(encoded(item(number)) + b"\n" for number in range(count))
    events = (b"id: %d\ndata: %b\n\n" % (number + 1, encoded(item(number))) for number in range(count))
    return b"".join(events) + END_EVENT


LINE = encoded(item(1234)) + b"\n"
"""Of a request in NDJSON that is echoed."""

SAID = encoded({"data": item(1234)})
TOLD = encoded({"output": "out", "data": item(1234)})
"""A message to a WebSocket, and the one that answers it."""

END_SAID = END_TOLD = encoded({"end": True})
