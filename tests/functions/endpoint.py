"""An OpenAI-compatible endpoint that does what it is told to, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
from contextlib import asynccontextmanager

from invoker import Headers, Message

SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def chunk(text=None, finish=None):
    """One event of a streamed chat completion."""
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish}
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n".encode()


DONE = b"data: [DONE]\n\n"
WHOLE = [SSE, chunk(""), chunk("It was "), chunk("Carroll."), chunk(finish="stop"), DONE]


class Endpoint:
    """A server that writes what it is told to; bytes are written, events are awaited, a number holds for ever."""

    def __init__(self, script):
        self.script = script
        self.requests = []
        self.asked = asyncio.Event()
        self.left = asyncio.Event()

    @asynccontextmanager
    async def served(self):
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()[:2]
            yield f"http://{host}:{port}/v1"

    async def _serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.splitlines()[1:])}
        body = json.loads(await reader.readexactly(int(fields["content-length"])))
        self.requests.append((head.splitlines()[0], fields, body))
        self.asked.set()
        gone = asyncio.create_task(_left(reader))
        try:
            for step in self.script:
                if isinstance(step, asyncio.Event):
                    waiting = asyncio.create_task(step.wait())
                    await asyncio.wait([waiting, gone], return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
                    if gone.done():
                        return
                else:
                    writer.write(step)
                    await writer.drain()
        finally:
            if gone.done():
                self.left.set()
            gone.cancel()
            writer.close()


async def _left(reader):
    """Wait until the client is gone, in whatever way."""
    with contextlib.suppress(ConnectionError):
        await reader.read()


def said(payload, role="user", media_type="text/plain"):
    """One leaf."""
    return Message(payload, headers=Headers({"role": role} if role else {}), media_type=media_type)
