"""Clients that send as much as they may to functions that do not read it, on every wire that has a stream of inputs.

python -m tests.attack.inputs [NAME ...] [--seconds 5] [--tree DIR]

``deaf`` is a function that waits for its other input, so that the first one is read on (R-129); ``asleep`` reads
nothing; an ``a`` before that is the same on the event loop. Twenty-four clients send 63 MiB each, or 151 where a
message may have 10 MiB, which is 1.5 GiB. With ``--seconds`` below 5, twelve
send 15 MiB each. Figures: the most
memory, memory once nothing changes any more, how many calls were ended or refused, and memory ten seconds after the
last client has gone (with ``--seconds`` below 5: once it is below 150 MiB).
"""

from __future__ import annotations

import asyncio
import base64
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import grpc
import grpc.aio

from invoker._pb.dspex import bridge_pb2
from invoker._pb.riff import riff_rpc_pb2
from invoker.codecs.chunks import Terms
from invoker.protocols.evergreen.action_engine.wire import Action, Chunk, Fragment, Metadata, encode
from tests.attack.callers import BRIDGE, varint
from tests.attack.memory import Peak, settled, wait_until_still
from tests.attack.runner import MIB, Attack, Figures, Victim, main
from tests.attack.sockets import framed, handshake
from tests.attack.streams import LINES, chunk
from tests.protocols.federated.service.devices import Device
from tests.protocols.graphpipe.asking import ask
from tests.transports.bridge import packed
from tests.transports.evergreen import PATH as SESSION
from tests.transports.evergreen import act, frame, leaf
from tests.transports.riff import PATH as INVOKE

FUNCTIONS = "tests.attack.unheeded"
_PROTOCOLS = "riff,evergreen,http,graphpipe,toolbridge,federated,typed,action-engine"
SETTLED_MIB = 150
"""Less is left once all clients have left."""

Send: TypeAlias = Callable[[Victim, int, threading.Event], str]
"""One client, which sends so many messages of 1 MiB, and stays until the event; how its call ended, if it did."""

_FRAME = (1 << 20) - 1024
_OCTETS = "application/octet-stream"
_SERVICE = f"/{FUNCTIONS}.UnheededService/"
_PATIENCE_S = 60.0
_SLICE_S = 0.1
_OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
_PAYLOAD = bytes(_FRAME)


def _grpc(path: str, messages: Iterator[bytes], victim: Victim, stop: threading.Event, function: str = "") -> str:
    """A call whose client does not half-close, and takes it back at the end."""

    def sent() -> Iterator[bytes]:
        yield from messages
        stop.wait(_PATIENCE_S)

    with grpc.insecure_channel(victim.grpc, _OPTIONS) as channel:
        metadata = (("invoker-function", function),) if function else ()
        call: Any = channel.stream_stream(path)(sent(), metadata=metadata)
        threading.Thread(target=lambda: (stop.wait(_PATIENCE_S), call.cancel())).start()
        try:
            for _ in call:
                pass
        except grpc.RpcError as error:
            return "held" if error.code() is grpc.StatusCode.CANCELLED else str(error.code().name)  # type: ignore[attr-defined]
        return "OK"


def _riff(function: str, victim: Victim, count: int, stop: threading.Event) -> str:
    pb = riff_rpc_pb2
    names = ["values", "signal"] if "deaf" in function else ["values"]
    start = pb.StartFrame(expectedContentTypes=[_OCTETS], inputNames=names)
    data = pb.InputFrame(payload=_PAYLOAD, contentType=_OCTETS, argIndex=0)
    messages = [pb.InputSignal(start=start).SerializeToString()]
    messages += [pb.InputSignal(data=data).SerializeToString()] * count
    return _grpc(INVOKE, iter(messages), victim, stop, function)


_MESSAGE = b"\x0a" + varint(_FRAME) + _PAYLOAD


def _typed(method: str, victim: Victim, count: int, stop: threading.Event) -> str:
    return _grpc(_SERVICE + method, iter([_MESSAGE] * count), victim, stop)


def _evergreen(function: str, victim: Victim, count: int, stop: threading.Event) -> str:
    def messages() -> Iterator[bytes]:
        if function:
            inputs = {"values": "v", "signal": "s"} if "deaf" in function else {"values": "v"}
            yield frame(act(function, inputs, {"output": "o"}))
        for seq in range(count):
            yield frame(leaf("v", _PAYLOAD, seq, more=True, media_type=_OCTETS))

    return _grpc(SESSION, messages(), victim, stop)


def _pushed(address: tuple[str, int], pieces: Iterator[bytes], stop: threading.Event, well: bytes = b"") -> str:
    """Send what goes through on a connection of its own; the status, if the peer says one."""
    with socket.create_connection(address, timeout=_PATIENCE_S) as sock:
        sock.settimeout(_SLICE_S)
        try:
            for piece in pieces:
                view = memoryview(piece)
                while view and not stop.is_set():
                    try:
                        view = view[sock.send(view) :]
                    except TimeoutError:
                        continue
        except ConnectionError:
            return _status(sock, stop, well) or "ended"
        return _status(sock, stop, well)


def _status(sock: socket.socket, stop: threading.Event, well: bytes) -> str:
    got = b""
    while True:
        try:
            more = sock.recv(1 << 16)
        except TimeoutError:
            if stop.is_set():
                return "held"
            continue
        except ConnectionError:
            more = b""
        got += more
        if got.startswith(b"HTTP/1.1 ") and len(got) > 12 and not got.startswith(b"HTTP/1.1 " + (well or b"?")):
            return got[9:12].decode()
        if not more:
            return "ended"


def _websocket(function: str, victim: Victim, count: int, stop: threading.Event) -> str:
    messages = [handshake(f"/{function}/ws"), *[framed(0x82, _PAYLOAD)] * count]
    return _pushed(victim.http_host, iter(messages), stop, b"101")


def _action_engine(function: str, victim: Victim, count: int, stop: threading.Event) -> str:
    def messages() -> Iterator[bytes]:
        yield handshake("/")
        if function:
            inputs = (("values", "v"), ("signal", "s")) if "deaf" in function else (("values", "v"),)
            yield framed(0x82, encode([], [Action("A", function, inputs, (("output", "o"),))]))
        for seq in range(count):
            one = Fragment("v", Chunk(_PAYLOAD, metadata=Metadata(_OCTETS)), seq, continued=True)
            yield framed(0x82, encode([one], []))

    return _pushed(victim.http_host, messages(), stop, b"101")


def _upload(path: str, media_type: str, item: bytes, victim: Victim, count: int, stop: threading.Event) -> str:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\nAccept: {LINES}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    return _pushed(victim.http_host, iter([head.encode(), *[chunk(item)] * count]), stop, b"200")


_LINE = b'{"values":"%b"}\n' % base64.b64encode(bytes(_FRAME * 3 // 4 // 3 * 3 - 30))
_ENVELOPE = struct.pack(">BI", 0, len(_MESSAGE)) + _MESSAGE


@cache
def _tensor() -> bytes:
    return ask([bytes(60 * MIB)])


def _graphpipe(left: int, victim: Victim, _: int, stop: threading.Event) -> str:
    """A request of which the last bytes are missing."""
    body = _tensor()
    host, _, port = victim.process.wait_for("graphpipe=").partition("graphpipe=")[2].split()[0].rpartition(":")
    named = struct.pack("<I", 1 << 31 | len("hold")) + b"hold"
    pieces = [named + struct.pack("<I", len(body)), body[: len(body) - left]]
    return _pushed((host, int(port)), iter(pieces), stop)


def _tool(function: str, size: int, victim: Victim, _: int, stop: threading.Event) -> str:
    request = bridge_pb2.ToolCallRequest(session_id="s", tool_id=function, args=[packed(bytes(size))])
    return _grpc(f"/{BRIDGE}/ExecuteTool", iter([request.SerializeToString()]), victim, stop)


@contextmanager
def _host(count: int) -> Iterator[str]:
    """The address of a host whose tool gives so many chunks of 1 MiB."""
    tools = [bridge_pb2.ToolSpec(tool_id="gives", name="gives", type=bridge_pb2.STREAMING)]
    listed = bridge_pb2.GetSessionToolsResponse(tools=tools).SerializeToString()

    def gives(*_: object) -> Iterator[bytes]:
        for number in range(count):
            data = packed(_PAYLOAD)
            yield bridge_pb2.ToolStreamChunk(sequence=number, data=data).SerializeToString()

    handlers = {
        "GetSessionTools": grpc.unary_unary_rpc_method_handler(lambda *_: listed),
        "StreamTool": grpc.unary_stream_rpc_method_handler(gives),
    }
    handler = grpc.method_handlers_generic_handler(BRIDGE, handlers)
    server = grpc.server(futures.ThreadPoolExecutor(64), [handler], options=_OPTIONS)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def _host_stream(address: str, victim: Victim, _: int, stop: threading.Event) -> str:
    name = f"s{threading.get_ident()}"
    with grpc.insecure_channel(victim.grpc, _OPTIONS) as channel:
        begin = bridge_pb2.InitializeSessionRequest(session_id=name, callback_address=address)
        ask: Any = channel.unary_unary(f"/{BRIDGE}/InitializeSession")
        ask(begin.SerializeToString(), timeout=_PATIENCE_S)
    request = bridge_pb2.ToolCallRequest(session_id=name, tool_id="deaf_to_host")
    return _grpc(f"/{BRIDGE}/ExecuteTool", iter([request.SerializeToString()]), victim, stop)


_CLIENTS, _MESSAGES = 24, 63
_LONG_S = 5.0


def _together(send: Send, clients: int, victim: Victim, seconds: float) -> Figures:
    """All clients at once, until nothing changes any more; then they leave."""
    count = _MESSAGES
    if seconds < _LONG_S:
        clients, count = _CLIENTS // 2, count // 4
    found: Counter[str] = Counter()
    stop = threading.Event()
    threads = [
        threading.Thread(target=lambda: found.update([send(victim, count, stop)])) for _ in range(clients)
    ]  # fmt: skip
    with Peak(victim) as peak:
        for thread in threads:
            thread.start()
        wait_until_still(victim, threads, max(seconds, 1.0))
        still = victim.rss_bytes
        stop.set()
        for thread in threads:
            thread.join()
    return _figures(victim, seconds, peak, still, found)


def _figures(victim: Victim, seconds: float, peak: Peak, still: int, found: Counter[str]) -> Figures:
    after, took_s = settled(victim, SETTLED_MIB * MIB, is_long=seconds >= _LONG_S)
    return {
        "peak MiB": peak.bytes // MIB,
        "still MiB": still // MIB,
        "after MiB": after // MIB,
        "settled s": round(took_s, 1),
        **dict(sorted(found.items())),
    }


def _hosts(victim: Victim, seconds: float) -> Figures:
    with _host(_MESSAGES) as address:
        return _together(partial(_host_stream, address), _CLIENTS, victim, seconds)


_REPORT_BYTES = 60_000_000

_FILE = """
[[population]]
name = "iris"
[[population.task]]
name = "train"
aggregate = "tests.attack.unheeded:unread"
plan = "devices:train"
initial = "tests.attack.unheeded:first"
min_clients = {count}
goal_clients = {count}
max_clients = {count}
over_selection = 1.0
report_timeout_s = 120.0
"""


@contextmanager
def serves() -> Iterator[Sequence[str]]:
    """The command line of a victim."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rounds.toml"
        path.write_text(_FILE.format(count=_CLIENTS))
        tcp, rounds = ("--graphpipe-tcp", "127.0.0.1:0"), ("--federated", str(path))
        yield FUNCTIONS, *tcp, "--auto-session", "--protocols", _PROTOCOLS, *rounds


async def _report(device: Device, size: int) -> str:
    try:
        await device.report_chunked(bytes(size), Terms(32768, 2, 0))
    except (EOFError, AssertionError) as error:
        return str(error).partition(":")[0] or "ended"
    return "thanked"


def _devices(clients: int, victim: Victim, seconds: float) -> Figures:
    """Reports of 60 MB, of a round whose function does not read them for fifteen seconds."""

    async def run() -> Counter[str]:
        async with grpc.aio.insecure_channel(victim.grpc) as channel:
            devices = [Device(channel) for _ in range(clients)]
            await asyncio.gather(*(one.check_in(supports_chunked_blob_transfer=True) for one in devices))
            size = _REPORT_BYTES if seconds >= 5 else _REPORT_BYTES // 4
            said = await asyncio.wait_for(asyncio.gather(*(_report(one, size) for one in devices)), 3 * _PATIENCE_S)
            return Counter(said)

    with Peak(victim) as peak:
        found = asyncio.run(run())
        still = victim.rss_bytes
    return _figures(victim, seconds, peak, still, found)


_BOTH = ("deaf", "adeaf", "asleep", "aasleep")
_SENDS: dict[str, Send] = {
    **{f"riff {one}": partial(_riff, one) for one in _BOTH},
    **{f"typed {one}": partial(_typed, one.capitalize()) for one in _BOTH},
    "evergreen nodes": partial(_evergreen, ""),
    **{f"evergreen {one}": partial(_evergreen, one) for one in _BOTH},
    "action-engine nodes": partial(_action_engine, ""),
    **{f"action-engine {one}": partial(_action_engine, one) for one in _BOTH},
    **{f"websocket {one}": partial(_websocket, one) for one in _BOTH},
    **{f"ndjson {one}": partial(_upload, f"/{one}", LINES, _LINE) for one in _BOTH},
    **{f"octets {one}": partial(_upload, f"/{one}", _OCTETS, _PAYLOAD) for one in _BOTH[2:]},
    **{
        f"connect {one}": partial(_upload, _SERVICE + one.capitalize(), "application/connect+proto", _ENVELOPE)
        for one in _BOTH
    },
    **{
        f"grpc-web {one}": partial(_upload, _SERVICE + one.capitalize(), "application/grpc-web+proto", _ENVELOPE)
        for one in _BOTH
    },
    "graphpipe tcp": partial(_graphpipe, 1),
    "graphpipe tcp hold": partial(_graphpipe, 0),
}
_TOOLS: dict[str, Send] = {f"tool {one}": partial(_tool, one, 10_000_000) for one in ("hold", "ahold")}
ATTACKS: dict[str, Attack] = {
    **{name: partial(_together, send, _CLIENTS) for name, send in _SENDS.items()},
    **{name: partial(_together, send, 151) for name, send in _TOOLS.items()},
    "host": _hosts,
    "reports": partial(_devices, _CLIENTS),
}

if __name__ == "__main__":
    with serves() as args:
        main(ATTACKS, *args)
