"""Clients that ask for much and read nothing of it: what is on its way to them counts, on every wire.

python -m tests.attack.unread [NAME ...] [--seconds 5] [--tree DIR]

A hundred calls of 9 MB each, on connections of their own, until nothing changes. Figures: memory then, and
the most of it before, how many calls were ended or refused by then, and memory ten seconds after all have left.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeAlias

import grpc
import numpy as np
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, ResponseReceived, StreamReset

from invoker._pb.dspex import bridge_pb2
from tests.attack.callers import BRIDGE, varint
from tests.attack.memory import Peak, settled, wait_until_still
from tests.attack.runner import MIB, Attack, Figures, Victim, main
from tests.attack.sockets import handshake
from tests.protocols.graphpipe.asking import ask
from tests.transports.bridge import packed
from tests.transports.riff import PATH, data, start

FUNCTIONS = "tests.attack.outliving"
ARGS = (FUNCTIONS, "--graphpipe-tcp", "127.0.0.1:0")

Open: TypeAlias = Callable[[Victim, ExitStack], Callable[[], str]]
"""Begins a call that is not read; what comes tells how it ended by now, or is empty."""

SETTLED_MIB = 150
"""Less is left once all clients have left."""

_BYTES = 9_000_000
_CALLS = 100
_ASKED = b"\x08" + varint(_BYTES)
_ENVELOPE = struct.pack(">BI", 0, len(_ASKED)) + _ASKED
_LINES = "application/x-ndjson"
_FILL = ask(np.array([_BYTES / 8]))
_TRIMMED_S = 3.0
"""What is freed goes back to the system every two seconds."""
_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.http2.bdp_probe", 0),
]


def _grpc(path: str, messages: list[bytes], victim: Victim, stack: ExitStack, function: str = "") -> Callable[[], str]:
    channel = stack.enter_context(grpc.insecure_channel(victim.grpc, _OPTIONS))
    metadata = (("invoker-function", function),) if function else ()
    call: Any = channel.stream_stream(path)(iter(messages), metadata=metadata)
    stack.callback(call.cancel)
    return lambda: "" if call.is_active() else str(call.code().name)


def _riff(function: str, victim: Victim, stack: ExitStack, *, outputs: int = 1) -> Callable[[], str]:
    return _grpc(PATH, [start(outputs=outputs), data(b"%d" % _BYTES)], victim, stack, function)


def _typed(method: str, victim: Victim, stack: ExitStack) -> Callable[[], str]:
    module = FUNCTIONS.rpartition(".")[2].title()
    return _grpc(f"/{FUNCTIONS}.{module}Service/{method}", [_ASKED], victim, stack)


def _tool(rpc: str, function: str, victim: Victim, stack: ExitStack) -> Callable[[], str]:
    request = bridge_pb2.ToolCallRequest(session_id="s", tool_id=function, args=[packed(_BYTES)])
    return _grpc(f"/{BRIDGE}/{rpc}", [request.SerializeToString()], victim, stack)


def _watch(victim: Victim, stack: ExitStack) -> Callable[[], str]:
    request = bridge_pb2.WatchVariablesRequest(session_id="s", include_initial=True)
    return _grpc(f"/{BRIDGE}/WatchSessionVariables", [request.SerializeToString()], victim, stack)


def _variable(victim: Victim, stack: ExitStack) -> Callable[[], str]:
    request = bridge_pb2.GetVariableRequest(session_id="s", variable_name="v")
    return _grpc(f"/{BRIDGE}/GetSessionVariable", [request.SerializeToString()], victim, stack)


def _http(path: str, accept: str, victim: Victim, stack: ExitStack) -> Callable[[], str]:
    begin = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode()
    return _told(_sent(victim.http_host, begin, stack))


def _post(path: str, media_type: str, body: bytes, victim: Victim, stack: ExitStack) -> Callable[[], str]:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n"
    return _told(_sent(victim.http_host, head.encode() + b"\r\n" + body, stack))


def _method(method: str, media_type: str, body: bytes, victim: Victim, stack: ExitStack) -> Callable[[], str]:
    module = FUNCTIONS.rpartition(".")[2].title()
    return _post(f"/{FUNCTIONS}.{module}Service/{method}", media_type, body, victim, stack)


def _websocket(path: str, victim: Victim, stack: ExitStack) -> Callable[[], str]:
    return _told(_sent(victim.http_host, handshake(path), stack), b"HTTP/1.1 101")


def _http2(path: str, accept: str, victim: Victim, stack: ExitStack) -> Callable[[], str]:
    """A stream whose window is never opened again; the connection takes what there is of frames."""
    h2 = H2Connection(H2Configuration(client_side=True))
    h2.initiate_connection()
    fields = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "localhost")]
    h2.send_headers(1, [*fields, ("accept", accept)], end_stream=True)
    sock = _sent(victim.http_host, h2.data_to_send(), stack)
    told: list[str] = []

    def look() -> str:
        try:
            while not told and (got := sock.recv(1 << 16)):
                for event in h2.receive_data(got):
                    if isinstance(event, StreamReset | ConnectionTerminated):
                        told.append("ended")
                    if isinstance(event, ResponseReceived) and (status := dict(event.headers)[b":status"]) != b"200":
                        told.append(status.decode())
        except BlockingIOError:
            return ""
        except ConnectionError:
            return "ended"
        return told[0] if told else "ended"

    return look


def _graphpipe_tcp(victim: Victim, stack: ExitStack) -> Callable[[], str]:
    host, _, port = victim.process.wait_for("graphpipe=").partition("graphpipe=")[2].split()[0].rpartition(":")
    named = struct.pack("<I", 1 << 31 | len("fill")) + b"fill"
    return _told(_sent((host, int(port)), named + struct.pack("<I", len(_FILL)) + _FILL, stack), b"")


def _sent(address: tuple[str, int], data: bytes, stack: ExitStack) -> socket.socket:
    """A connection on which that has been sent, with little room for what comes."""
    sock = stack.enter_context(socket.socket())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(20)
    sock.connect(address)
    sock.sendall(data)
    sock.setblocking(False)
    return sock


def _told(sock: socket.socket, well: bytes = b"HTTP/1.1 200") -> Callable[[], str]:
    """How the response ended, judged by how it begins."""
    told: list[str] = []

    def look() -> str:
        if not told:
            try:
                got = sock.recv(12, socket.MSG_PEEK)
                if not got.startswith(well) or not got:
                    told.append(got[9:12].decode() or "ended")
            except BlockingIOError:
                return ""
            except ConnectionError:
                told.append("ended")
        return told[0] if told else ""

    return look


@contextmanager
def _session(victim: Victim) -> Iterator[None]:
    """A session of the tool bridge that has a variable of 9 MB."""
    with grpc.insecure_channel(victim.grpc, _OPTIONS) as channel:
        unary: Any = channel.unary_unary
        begin = bridge_pb2.InitializeSessionRequest(session_id="s")
        unary(f"/{BRIDGE}/InitializeSession")(begin.SerializeToString(), timeout=20)
        put = bridge_pb2.SetVariableRequest(
            session_id="s", variable_name="v", value=packed(bytes(_BYTES)), create_if_missing=True
        )
        unary(f"/{BRIDGE}/SetSessionVariable")(put.SerializeToString(), timeout=20)
        yield


def _unread(begin: Open, victim: Victim, seconds: float) -> Figures:
    looks: list[Callable[[], str]] = []
    with ExitStack() as stack, _session(victim), Peak(victim) as peak:
        threads = [threading.Thread(target=lambda: looks.append(begin(victim, stack))) for _ in range(_CALLS)]
        for thread in threads:
            thread.start()
            thread.join(0.02)
        for thread in threads:
            thread.join()
        wait_until_still(victim, [], max(seconds, _TRIMMED_S))
        still = victim.rss_bytes
        ended = [one for look in looks if (one := look())]
    after, took_s = settled(victim, SETTLED_MIB * MIB, is_long=seconds >= 5)
    return {
        "still MiB": still // MIB,
        "peak MiB": peak.bytes // MIB,
        "after MiB": after // MIB,
        "settled s": round(took_s, 1),
        **{one: ended.count(one) for one in sorted(set(ended))},
    }


_OPENS: dict[str, Open] = {
    **{f"riff {one}": partial(_riff, one) for one in ("give", "agive", "gives", "agives")},
    **{f"typed {one}": partial(_typed, one) for one in ("Give", "Agive", "Gives", "Agives")},
    **{f"ExecuteTool {one}": partial(_tool, "ExecuteTool", one) for one in ("give", "agive")},
    "variable": _variable,
    "watch": _watch,
    **{f"http {one}": partial(_http, f"/{one}?size={_BYTES}", "*/*") for one in ("give", "agive")},
    **{
        f"{kind} {one}": partial(_http, f"/{one}?size={_BYTES}&count=3", accept)
        for kind, accept in (("sse", "text/event-stream"), ("ndjson", _LINES), ("multipart", "multipart/mixed"))
        for one in ("gives", "agives")
    },
    **{f"connect {one}": partial(_method, one, "application/proto", _ASKED) for one in ("Give", "Agive")},
    **{f"connect {one}": partial(_method, one, "application/connect+proto", _ENVELOPE) for one in ("Gives", "Agives")},
    **{
        f"grpc-web {one}": partial(_method, one, "application/grpc-web+proto", _ENVELOPE)
        for one in ("Give", "Agive", "Gives", "Agives")
    },
    **{
        f"http/2 {one}": partial(
            _http2, f"/{one}?size={_BYTES}&count=3".removesuffix("" if one[-1] == "s" else "&count=3"), accept
        )
        for one, accept in (("give", "*/*"), ("agive", "*/*"), ("gives", _LINES), ("agives", _LINES))
    },
    **{f"websocket {one}": partial(_websocket, f"/{one}/ws?size={_BYTES}") for one in ("give", "agive")},
    **{f"websocket {one}": partial(_websocket, f"/{one}/ws?size={_BYTES}&count=3") for one in ("gives", "agives")},
    **{
        f"graphpipe {one}": partial(_post, f"/graphpipe/{one}", "application/octet-stream", _FILL)
        for one in ("fill", "afill")
    },
    "graphpipe tcp": _graphpipe_tcp,
    "riff pair": partial(_riff, "pair", outputs=2),
}
ATTACKS: dict[str, Attack] = {name: partial(_unread, begin) for name, begin in _OPENS.items()}

if __name__ == "__main__":
    main(ATTACKS, *ARGS)
