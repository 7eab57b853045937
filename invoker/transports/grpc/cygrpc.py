"""Lists and probes every private name of grpcio that the fast transport uses; no other module imports them.

grpcio's own sync server uses the same layer, so the layer seldom changes, but without any guarantee. `unusable` looks
for the symbols and makes one call through them. If anything is not as expected, it gives the reason as a sentence and
never crashes, and the public transport serves instead. ADR 0006 lists the parts that are used, and how a new release is
verified.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from typing import Any

import grpc

cygrpc: Any = None
"""grpcio's private layer; None where a release has none, or keeps it elsewhere."""
with contextlib.suppress(ImportError):
    cygrpc = importlib.import_module("grpc._cython.cygrpc")

NO_FLAGS = 0
BUFFER_HINT = 1
"""``GRPC_WRITE_BUFFER_HINT``: the message may wait in the transport's buffer for the next one."""

_SYMBOLS = (
    "Server",
    "CompletionQueue",
    "CompletionType",
    "ReceiveCloseOnServerOperation",
    "ReceiveMessageOperation",
    "SendInitialMetadataOperation",
    "SendMessageOperation",
    "SendStatusFromServerOperation",
    "peer_identities",
)
_SERVER_METHODS = (
    "add_http2_port",
    "cancel_all_calls",
    "destroy",
    "register_completion_queue",
    "register_method",
    "request_call",
    "request_registered_call",
    "shutdown",
    "start",
)
_METHOD = "/invoker.Probe/Echo"
_PROBE_S = 5.0

_abandoned: list[Any] = []


def unusable() -> str:
    """A short reason why the fast transport cannot serve with the installed grpcio; empty when it can."""
    if cygrpc is None:
        return "it has no grpc._cython.cygrpc"
    missing = [name for name in _SYMBOLS if not hasattr(cygrpc, name)]
    missing += [f"Server.{name}" for name in _SERVER_METHODS if not hasattr(getattr(cygrpc, "Server", None), name)]
    if not hasattr(grpc.ServerCredentials(None), "_credentials"):
        missing.append("ServerCredentials._credentials")
    if missing:
        return f"its private layer lacks {', '.join(missing)}"
    try:
        return _probe()
    except Exception as error:  # noqa: BLE001 - whatever a new release raises here, the public transport is used
        return f"its private layer raised {type(error).__name__}: {error}"


def _probe() -> str:
    """Run one call through the operations that the transport combines.

    Returns the difference in a few words, or an empty string.
    """
    server = cygrpc.Server([(b"grpc.so_reuseport", 0)], False)
    queue, private = cygrpc.CompletionQueue(), cygrpc.CompletionQueue()
    server.register_completion_queue(queue)
    server.register_method(_METHOD)
    port = server.add_http2_port(b"127.0.0.1:0")
    if not port:
        return ""  # the loopback interface has no free port here, so only the symbols are checked
    server.start()
    answer: list[Any] = []
    client = threading.Thread(target=_call, args=(port, answer), daemon=True)
    client.start()
    try:
        return _serve_one(server, queue, private) or _judge(client, answer)
    finally:
        _close(server, queue, private)


def _close(server: Any, queue: Any, private: Any) -> None:
    """End the probe's server; one that does not end is kept, since dropping its queues would wait for it."""
    server.shutdown(queue, "shutdown")
    server.cancel_all_calls()
    until = time.time() + _PROBE_S
    while time.time() < until:
        if queue.poll(until).tag == "shutdown":
            server.destroy()
            return
    _abandoned.append((server, queue, private))


def _call(port: int, answer: list[Any]) -> None:
    options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        stub: Any = channel.stream_stream(_METHOD)
        try:
            call = stub(iter([b"ping"]), timeout=_PROBE_S)
            answer.extend([list(call), call.code()])
        except grpc.RpcError as error:
            answer.append(error)


def _judge(client: threading.Thread, answer: list[Any]) -> str:
    client.join(_PROBE_S)
    if answer != [[b"ping"], grpc.StatusCode.OK]:
        return f"a call through its private layer gave {answer!r}"
    return ""


def _serve_one(server: Any, queue: Any, private: Any) -> str:
    server.request_registered_call(private, queue, _METHOD, "accept")
    accepted = queue.poll(time.time() + _PROBE_S)
    if accepted.tag != "accept" or not accepted.success:
        return "a registered call is not announced by its tag"
    call, frame = accepted.call, None
    seen: set[str] = set()
    receive = cygrpc.ReceiveMessageOperation(NO_FLAGS)
    call.start_server_batch((cygrpc.ReceiveCloseOnServerOperation(NO_FLAGS),), "close")
    call.start_server_batch((cygrpc.SendInitialMetadataOperation((), NO_FLAGS), receive), "open")
    until = time.monotonic() + _PROBE_S
    while seen != {"open", "both", "status", "close"}:
        event = private.poll(time.time() + _PROBE_S)
        if time.monotonic() > until or not event.success:
            return f"an operation of the private layer failed; done so far: {sorted(seen)}"
        seen.add(event.tag)
        if event.tag == "open":
            frame = event.batch_operations[-1].message()
            call.start_server_batch((cygrpc.SendMessageOperation(frame, NO_FLAGS), receive), "both")
        elif event.tag == "both":
            if event.batch_operations[-1].message() is not None:
                return "a half-close does not show as an empty receive"
            status = cygrpc.SendStatusFromServerOperation((), 0, b"", NO_FLAGS)
            call.start_server_batch((status,), "status")
        elif event.tag == "close" and event.batch_operations[0].cancelled():
            return "a finished call is reported as a cancelled one"
    return ""
