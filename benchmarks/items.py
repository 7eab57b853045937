"""The exact bytes of streams by HTTP and WebSocket, for invoker, the other servers and the client.

This module does not import invoker, since the environments of other servers do not have it.
"""

from __future__ import annotations

import json
from typing import Any

TEXT = "one token of a stream"
SSE, NDJSON = "text/event-stream", "application/x-ndjson"
END_EVENT = b"event: end\ndata: {}\n\n"


def item(number: int) -> dict[str, Any]:
    """Return the item of this number, as a function yields it."""
    return {"n": number, "text": TEXT}


def encoded(value: Any) -> bytes:
    """Encode a value as JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def streamed(form: str, count: int) -> bytes:
    """Make the whole body of a stream of ``count`` items; ``form`` is its media type, SSE or NDJSON."""
    if form == NDJSON:
        return b"".join(encoded(item(number)) + b"\n" for number in range(count))
    events = (b"id: %d\ndata: %b\n\n" % (number + 1, encoded(item(number))) for number in range(count))
    return b"".join(events) + END_EVENT


LINE = encoded(item(1234)) + b"\n"
"""A line of NDJSON that is sent and echoed."""

SAID = encoded({"data": item(1234)})
TOLD = encoded({"output": "out", "data": item(1234)})
"""A message to a WebSocket (SAID), and its reply (TOLD)."""

END_SAID = END_TOLD = encoded({"end": True})
