"""Clients that ask for much and read nothing of it: what is on its way to them counts, on every wire.

python -m tests.attack.unread [NAME ...] [--seconds 5] [--tree DIR]

A hundred calls of 9 MB each, on connections of their own, until nothing changes. Figures: memory then, and
the most of it before, how many calls were ended or refused by then, and memory ten seconds after all have left.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeAlias

import grpc

from invoker._pb.dspex import bridge_pb2
from tests.attack.callers import BRIDGE, varint
from tests.attack.memory import Peak, settled, wait_until_still
from tests.attack.runner import MIB, Attack, Figures, Victim, main
from tests.doors.bridge import packed
from tests.doors.riff import PATH, data, start

__all__ = ["ATTACKS", "FUNCTIONS"]

FUNCTIONS = "tests.attack.outliving"

Open: TypeAlias = Callable[[Victim, ExitStack], Callable[[], str]]
"""Begins a call that is not read; what comes tells how it ended by now, or is empty."""

_BYTES = 9_000_000
_CALLS = 100
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


def _riff(function: str, victim: Victim, stack: ExitStack) -> Callable[[], str]:
    return _grpc(PATH, [start(), data(b"%d" % _BYTES)], victim, stack, function)


def _typed(method: str, victim: Victim, stack: ExitStack) -> Callable[[], str]:
    module = FUNCTIONS.rpartition(".")[2].title()
    return _grpc(f"/{FUNCTIONS}.{module}Service/{method}", [b"\x08" + varint(_BYTES)], victim, stack)


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
    sock = stack.enter_context(socket.socket())
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(20)
    sock.connect(victim.http_host)
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode())
    sock.setblocking(False)
    told: list[str] = []

    def look() -> str:
        if not told:
            try:
                got = sock.recv(12, socket.MSG_PEEK)
                if not got.startswith(b"HTTP/1.1 200"):
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
    after, took_s = settled(victim, 150 * MIB)
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
        for kind, accept in (("sse", "text/event-stream"), ("ndjson", "application/x-ndjson"))
        for one in ("gives", "agives")
    },
}
ATTACKS: dict[str, Attack] = {name: partial(_unread, begin) for name, begin in _OPENS.items()}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
