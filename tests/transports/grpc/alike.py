"""One catalogue behind two gRPC transports: in one a whole call may run without a reactor, in the other none does.

The second one is the specification: a client and an operator cannot tell the two apart.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hpack import Decoder

from invoker._pb.dspex import bridge_pb2 as bpb
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.core.invocation import Invocation
from invoker.core.unary import UnaryInvocation
from invoker.protocols.toolbridge.service.rpcs import SERVICE
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.typed.calls import calls_of
from invoker.protocols.typed.codec import Book, FieldCodec
from invoker.protocols.typed.session import TypedSession
from invoker.transports.grpc.methods import CallMethod
from tests.conftest import SLOW
from tests.protocols.web.service.alike import Noted, lines
from tests.transports.bridge import Bridged, packed
from tests.transports.riff import PATH, eventually, start

_DATA, _HEADERS, _RST, _SETTINGS, _PING, _WINDOW = 0, 1, 3, 4, 6, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_HEAD = struct.Struct(">HBBBL")
_MOST = 2**31 - 1
_CUT = 16384
_OWN = (":status", "content-type", "grpc-accept-encoding", "accept-encoding")
"""Fields that every response has; whether they come with the headers or with the trailers is up to gRPC."""

CANCEL = 8
TOOL = f"/{SERVICE}/ExecuteTool"


def h2_frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame of HTTP/2."""
    return _HEAD.pack(len(payload) >> 8, len(payload) & 255, kind, flags, stream) + payload


def message(payload: bytes) -> bytes:
    """One message as gRPC writes it."""
    return b"\0" + struct.pack(">L", len(payload)) + payload


@dataclass(frozen=True)
class Sent:
    """What a client sends in one call.

    Attributes:
        frames: The messages.
        path: The method.
        metadata: The metadata of the call.
        ends: Whether the client half-closes.
        cut: Where the bytes of the call are cut into packets.
        pause_s: How long the client waits between two packets.
        is_late: Whether the half-close has a frame and a packet of its own.
    """

    frames: Sequence[bytes]
    path: str = PATH
    metadata: tuple[tuple[str, str], ...] = ()
    ends: bool = True
    cut: tuple[int, ...] = ()
    pause_s: float = 0.0
    is_late: bool = False

    def packets(self, stream: int) -> list[bytes]:
        """The bytes of the call, as they are given to the socket."""
        fields = ((":method", "POST"), (":scheme", "http"), (":path", self.path), (":authority", "localhost"))
        more = (("content-type", "application/grpc"), ("te", "trailers"), ("user-agent", "grpc-c/58.0.0"))
        block = b"".join(_literal(*one) for one in (*fields, *more, *self.metadata))
        body = b"".join(map(message, self.frames))
        parts = [body[at : at + _CUT] for at in range(0, len(body), _CUT)] or [b""]
        data = b"".join(h2_frame(_DATA, 0, stream, one) for one in parts[:-1])
        is_last = self.ends and not self.is_late
        data += h2_frame(_DATA, _END_STREAM if is_last else 0, stream, parts[-1]) if parts[-1] or is_last else b""
        whole = h2_frame(_HEADERS, _END_HEADERS, stream, block) + data
        ends = [at for at in (*self.cut, len(whole)) if at <= len(whole)]
        packets = [whole[begin:end] for begin, end in zip((0, *ends), ends, strict=False)]
        if self.ends and self.is_late:
            packets.append(h2_frame(_DATA, _END_STREAM, stream))
        return [one for one in packets if one]


@dataclass
class Answer:
    """What a client gets in one call.

    Attributes:
        fields: The headers and trailers, besides those of every response.
        body: The messages.
        reset: The error with which the server has reset the stream; None: it has not.
        is_tool: Whether it is the response of a tool.
    """

    fields: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    reset: int | None = None
    is_tool: bool = False

    @property
    def status(self) -> int:
        """The code of the status."""
        return int(dict(self.fields).get("grpc-status", -1))

    def without_times(self) -> Answer:
        """The same answer without the times that the tool bridge adds."""
        fields = [(name, _timeless(one) if name == "dspex-error-bin" else one) for name, one in self.fields]
        if not self.is_tool:
            return replace(self, fields=fields)
        response = bpb.ToolCallResponse.FromString(self.body[5:])
        response.ClearField("metrics")
        response.error.ClearField("timestamp")
        return replace(self, fields=fields, body=response.SerializeToString())


class Client:
    """A connection of HTTP/2 without a client's manners, which makes one call after the other.

    Args:
        port: Where the server listens.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 5 * SLOW)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = Decoder()
        self._rest = bytearray()
        self._stream = -1
        settings = b"".join(struct.pack(">HL", *one) for one in ((1, 0), (2, 0), (4, _MOST)))
        window = struct.pack(">L", _MOST - 65535)
        self._socket.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + h2_frame(_SETTINGS, 0, 0, settings) + h2_frame(_WINDOW, 0, 0, window)
        )

    def begin(self, sent: Sent) -> int:
        """Send a call; returns the number of its stream."""
        self._stream += 2
        for number, packet in enumerate(sent.packets(self._stream)):
            if number and sent.pause_s:
                time.sleep(sent.pause_s)
            self._socket.sendall(packet)
        return self._stream

    def reset(self, stream: int, code: int = CANCEL) -> None:
        """Cancel a call."""
        self._socket.sendall(h2_frame(_RST, 0, stream, struct.pack(">L", code)))

    def call(self, sent: Sent) -> Answer:
        """Send a call, and wait for its end."""
        answer = self.answer(self.begin(sent))
        answer.is_tool = sent.path == TOOL and bool(answer.body)
        return answer

    def answer(self, stream: int) -> Answer:
        """Wait for the end of a call; what comes for earlier ones is skipped."""
        found, body = Answer(), bytearray()
        while True:
            kind, flags, number, payload = self._next()
            if kind == _HEADERS:
                fields = [(str(name), str(value)) for name, value in self._decoder.decode(payload)]
            if number != stream:
                continue
            if kind == _HEADERS:
                found.fields += [one for one in fields if one[0] not in _OWN]
            elif kind == _DATA:
                body += payload
            elif kind == _RST:
                found.reset = int.from_bytes(payload, "big")
            if kind == _RST or (kind in (_HEADERS, _DATA) and flags & _END_STREAM):
                found.body = bytes(body)
                return found

    def headers(self, stream: int) -> list[tuple[str, str]]:
        """Wait for the headers of a call; other frames are skipped."""
        while True:
            kind, _, number, payload = self._next()
            if kind == _HEADERS:
                fields = [(str(name), str(value)) for name, value in self._decoder.decode(payload)]
                if number == stream:
                    return fields

    def close(self) -> None:
        """Close the socket, which cancels all calls."""
        self._socket.close()

    def _next(self) -> tuple[int, int, int, bytes]:
        while True:
            if len(self._rest) >= 9:
                high, low, kind, flags, number = _HEAD.unpack_from(self._rest)
                end = 9 + (high << 8 | low)
                if len(self._rest) >= end:
                    payload = bytes(self._rest[9:end])
                    del self._rest[:end]
                    if kind == _SETTINGS and not flags & _ACK:
                        self._socket.sendall(h2_frame(_SETTINGS, _ACK, 0))
                    elif kind == _PING and not flags & _ACK:
                        self._socket.sendall(h2_frame(_PING, _ACK, 0, payload))
                    return kind, flags, number, payload
            came = self._socket.recv(1 << 18)
            if not came:
                raise ConnectionError("the server has closed the connection")
            self._rest += came


class Serving(Bridged):
    """A fast transport with riff, the tool bridge and the typed methods of some functions."""

    def __init__(self, kind: str, *functions: Callable[..., Any], **about: Any) -> None:
        super().__init__(kind, *functions, settings=BridgeSettings(message_bytes=1 << 20), is_asked=False, **about)
        specs = [one.spec for one in self.driver.engine.catalog]
        typed, book = calls_of(specs), Book(lambda: specs)
        self.driver.engine.registry.register(FieldCodec(book), first=False)
        self.pages, self.typed = book.pages, {one.spec.name: one for one in typed}
        self._transport["methods"] += tuple(
            CallMethod(one.service, one.method, partial(TypedSession, one), takes_one=not one.streams_in)
            for one in typed
        )

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A connection of its own."""
        with contextlib.closing(Client(self.port)) as made:
            yield made

    def is_quiet(self) -> bool:
        """Whether nothing is left of any call."""
        driver = self.driver
        rest = (driver.engine.running, driver.conversations, driver.direct, driver.leaving, driver.alarm.limits)
        poller = self.transport._queue_poller
        return not any(rest) and not driver.threads.busy and not (poller.waiting or poller.coming or poller._calls)


class Two:
    """Two servers of the same functions, and a client of each.

    Attributes:
        unary: Runs whole calls without a reactor where that is possible.
        reactor: Never does.
    """

    def __init__(self, stack: ExitStack, kind: str, *functions: Callable[..., Any], **about: Any) -> None:
        self.unary, self.reactor = (Serving(kind, *functions, **about) for _ in range(2))
        engine = self.reactor.driver.engine
        plan = engine.plan
        engine.plan = lambda command: replace(plan(command), is_unary=False)  # type: ignore[method-assign]
        for one in self:
            stack.enter_context(one)
            one.session()
        self.noted = [Noted(one) for one in self]  # type: ignore[arg-type]  # only its driver is asked for
        self.clients = [stack.enter_context(one.client()) for one in self]

    def __iter__(self) -> Iterator[Serving]:
        return iter((self.unary, self.reactor))

    def same(self, sent: Sent) -> Answer:
        """Make a call of both, compare all that can be seen, and return the answer."""
        answers, told = [], []
        for serving, noted, client in zip(self, self.noted, self.clients, strict=True):
            with lines() as logged:
                answers.append(client.call(sent).without_times())
                assert eventually(serving.is_quiet, 5 * SLOW), serving.driver.left_behind
            told.append((logged, [*noted.told]))
            noted.told.clear()
        assert answers[0] == answers[1], (sent, *answers)
        assert told[0] == told[1], (sent, *told)
        return answers[0]

    def finish(self) -> None:
        """Compare what the engines have counted, and check that each server has done what it is for."""
        first, second = (replace(one.driver.engine.counters, seconds=0.0) for one in self)
        assert first == second, (first, second)
        assert UnaryInvocation in self.noted[0].kinds
        assert self.noted[1].kinds == {Invocation}


@contextmanager
def two(kind: str, *functions: Callable[..., Any], **about: Any) -> Iterator[Two]:
    """Serve functions twice, on one kind of loop."""
    with ExitStack() as stack:
        yield Two(stack, kind, *functions, **about)


def riff(name: str, *payloads: bytes, media_type: str = "application/json", **how: Any) -> Sent:
    """A call of riff with one message for each input, or several for the only one."""
    single = name not in ("add", "adds")
    frames = [
        pb.InputFrame(payload=one, argIndex=0 if single else index, contentType=media_type)
        for index, one in enumerate(payloads)
    ]
    metadata = (("invoker-function", name), *how.pop("metadata", ()))
    return Sent([start(), *(pb.InputSignal(data=one).SerializeToString() for one in frames)], metadata=metadata, **how)


def tool(name: str, *args: Any, session_id: str = "s1", timeout_ms: int = 0, **how: Any) -> Sent:
    """A call of a tool."""
    request = bpb.ToolCallRequest(
        session_id=session_id, tool_id=name, args=[packed(one) for one in args], timeout_ms=timeout_ms
    )
    return Sent([request.SerializeToString()], path=TOOL, **how)


def _timeless(field_: str) -> str:
    info = bpb.ErrorInfo.FromString(b64decode(field_ + "=="))
    info.ClearField("timestamp")
    return str(info)


def _literal(name: str, value: str) -> bytes:
    """One header field without index and without Huffman code."""
    return b"\0" + _string(name) + _string(value)


def _string(text: str) -> bytes:
    octets = text.encode()
    return (bytes([len(octets)]) if len(octets) < 127 else b"\x7f" + bytes([len(octets) - 127])) + octets
