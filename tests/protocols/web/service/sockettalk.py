"""What the tests of functions on WebSockets say and hear."""

from __future__ import annotations

import json
from typing import Any

from tests.transports.sockets import Peer


async def say(peer: Peer, *frames: Any) -> None:
    """Send bytes as they are, and anything else as JSON."""
    from wsproto.events import BytesMessage

    for one in frames:
        await (peer.send(BytesMessage(data=one)) if isinstance(one, bytes) else peer.text(json.dumps(one)))


async def hear(peer: Peer) -> Any:
    frame = await peer.message()
    return json.loads(frame) if isinstance(frame, str) else frame


async def rest(peer: Peer) -> list[Any]:
    return [json.loads(one) if isinstance(one, str) else one for one in await peer.messages()]


def out(data: Any, name: str = "out") -> dict[str, Any]:
    return {"output": name, "data": data}


END = {"end": True}
