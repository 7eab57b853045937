"""`RawCall`: one riff call in HTTP/2 frames, for tests that gRPC libraries do not allow.

grpc-js cancels a call by an empty DATA frame with END_STREAM, and RST_STREAM some milliseconds later. Other clients
write a whole call in one piece. Both are legal, and servers may lose data in both cases.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import h2.config
import h2.connection
import h2.errors
import h2.events

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker_conformance.riff import frames
from invoker_conformance.target import Address

_READ = 64 * 1024
_WINDOW = (1 << 31) - 1


class RawCall:
    """A call on its own connection; made by `raw_call`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self._stream = 0
        self._got = b""
        self.sent = ""
        self.trailers: dict[str, str] = {}

    def open(self, authority: str, metadata: Sequence[tuple[str, str]]) -> None:
        """Send the preface and the headers of the call."""
        self._http.initiate_connection()
        self._http.increment_flow_control_window(_WINDOW - 65_535)
        self._stream = self._http.get_next_available_stream_id()
        head = [(":method", "POST"), (":scheme", "http"), (":path", frames.PATH), (":authority", authority)]
        self._http.send_headers(
            self._stream,
            [*head, ("content-type", "application/grpc"), ("te", "trailers"), *metadata],
        )
        self._http.increment_flow_control_window(_WINDOW - 65_535, self._stream)
        self.flush()

    def send(self, *signals: pb.InputSignal, end: bool = False) -> None:
        """Prepare signals as gRPC messages; `flush` writes them.

        Args:
            signals: The signals, in order; in total not more bytes than the peer's window, at first 65,535.
            end: Whether to half-close, with the last signal or alone.
        """
        self.sent = ", ".join(filter(None, [self.sent, *map(frames.shown, signals[:4]), "half-close" if end else ""]))
        messages = b"".join(
            b"\0" + len(message).to_bytes(4) + message for message in (each.SerializeToString() for each in signals)
        )
        size = self._http.max_outbound_frame_size
        pieces = [messages[at : at + size] for at in range(0, len(messages), size)] or [b""]
        for last, piece in enumerate(pieces, 1 - len(pieces)):
            self._http.send_data(self._stream, piece, end_stream=end and not last)

    def flush(self) -> None:
        """Write the prepared frames in one piece."""
        self._writer.write(self._http.data_to_send())

    def reset(self) -> None:
        """Send RST_STREAM with CANCEL."""
        self.sent += ", RST_STREAM"
        self._http.reset_stream(self._stream, h2.errors.ErrorCodes.CANCEL)
        self.flush()

    async def ends(self) -> list[bytes]:
        """Read to the end of the call, and return the payloads of its frames; ``trailers`` then has the status."""
        while (data := await self._reader.read(_READ)) and not self._take(data):
            self.flush()
        payloads = []
        while self._got:
            size = int.from_bytes(self._got[1:5])
            payloads.append(pb.OutputSignal.FromString(self._got[5 : 5 + size]).data.payload)
            self._got = self._got[5 + size :]
        return payloads

    def _take(self, data: bytes) -> bool:
        """Handle bytes of the connection; returns whether the call has ended."""
        for event in self._http.receive_data(data):
            match event:
                case h2.events.DataReceived():
                    self._got += event.data or b""
                case h2.events.ResponseReceived() | h2.events.TrailersReceived():
                    self.trailers |= {str(name): str(value) for name, value in event.headers or ()}
                case h2.events.StreamEnded() | h2.events.StreamReset() | h2.events.ConnectionTerminated():
                    return True
        return False


@asynccontextmanager
async def raw_call(address: Address, metadata: Sequence[tuple[str, str]]) -> AsyncIterator[RawCall]:
    """Open a connection with one call; both are closed at the end."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        call = RawCall(reader, writer)
        call.open(str(address), metadata)
        yield call
    finally:
        writer.transport.abort()
