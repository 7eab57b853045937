"""Hosts of the tool bridge that make a process keep much as long as their sessions live.

python -m tests.attack.hoards [NAME ...] [--seconds 5] [--tree DIR]

``results`` are forty sessions with ``enable_caching``, each with seven results of 9 MB; ``lists`` are a hundred
sessions of a host that is called back and lists a thousand tools of 9 kB; ``few`` are a tenth. Figures: the most
memory, memory while all sessions are there, and ten seconds after the last was closed, and how many sessions were
refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc

from invoker._pb.dspex import bridge_pb2 as pb
from tests.attack.callers import BRIDGE
from tests.attack.memory import Peak, settled
from tests.attack.runner import MIB, Attack, Figures, Victim, main
from tests.conftest import SLOW
from tests.transports.bridge import packed

FUNCTIONS = "tests.attack.mixed"
NO_COLLECTOR = "tests.attack.outliving"
"""The same without Python's collector."""

_CACHING, _RESULTS, _RESULT_BYTES = 40, 7, 9_000_000
_CALLED_BACK, _TOOLS, _TOOL_BYTES = 100, 1000, 9000
_PATIENCE_S = 20.0 * SLOW
_FEW_MIB = 150
_LONG_S = 5.0
STILL_MIB = {True: 900, False: 350}
"""Less is held while all sessions are there, of all sessions or of a few."""
_OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]


def _session(channel: grpc.Channel, begin: pb.InitializeSessionRequest) -> bool:
    """Make a session; whether that was done."""
    ask: Any = channel.unary_unary(f"/{BRIDGE}/InitializeSession")
    try:
        return bool(
            pb.InitializeSessionResponse.FromString(ask(begin.SerializeToString(), timeout=_PATIENCE_S)).success
        )
    except grpc.RpcError:
        return False


def _result(channel: grpc.Channel, session_id: str, number: int) -> None:
    """A call whose result is kept."""
    ask: Any = channel.unary_unary(f"/{BRIDGE}/ExecuteTool")
    request = pb.ToolCallRequest(
        session_id=session_id, tool_id="give", args=[packed(_RESULT_BYTES)], request_id=f"r{number}"
    )
    assert len(ask(request.SerializeToString(), timeout=_PATIENCE_S)) > _RESULT_BYTES


def _end(channel: grpc.Channel, session_id: str) -> None:
    ask: Any = channel.unary_unary(f"/{BRIDGE}/CleanupSession")
    ask(pb.CleanupSessionRequest(session_id=session_id, force=True).SerializeToString(), timeout=_PATIENCE_S)


@contextmanager
def _host() -> Iterator[str]:
    """The address of a host with many tools."""
    tools = [pb.ToolSpec(tool_id=f"t{one}", name=f"t{one}", description="x" * _TOOL_BYTES) for one in range(_TOOLS)]
    listed = pb.GetSessionToolsResponse(tools=tools).SerializeToString()
    handler = grpc.method_handlers_generic_handler(
        BRIDGE, {"GetSessionTools": grpc.unary_unary_rpc_method_handler(lambda *_: listed)}
    )
    server = grpc.server(futures.ThreadPoolExecutor(4), [handler], options=[("grpc.max_send_message_length", -1)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def _hoard(count: int, results: int, address: str, victim: Victim, seconds: float) -> Figures:
    config = pb.SessionConfig(enable_caching=bool(results))
    most_bytes = STILL_MIB[seconds >= _LONG_S] * MIB - MIB
    refused = 0
    with grpc.insecure_channel(victim.grpc, _OPTIONS) as channel:
        names = [f"s{one}" for one in range(count)]
        with Peak(victim) as peak:
            for name in names:
                begin = pb.InitializeSessionRequest(session_id=name, config=config, callback_address=address)
                refused += not _session(channel, begin)
                for number in range(results):
                    _result(channel, name, number)
            held, _ = settled(victim, most_bytes, is_long=seconds >= _LONG_S)
        for name in names:
            _end(channel, name)
        after, took_s = settled(victim, _FEW_MIB * MIB, is_long=seconds >= _LONG_S)
    return {
        "peak MiB": peak.bytes // MIB,
        "still MiB": held // MIB,
        "after MiB": after // MIB,
        "settled s": round(took_s, 1),
        "refused": refused,
    }


def _results(count: int, victim: Victim, seconds: float) -> Figures:
    return _hoard(count, _RESULTS, "", victim, seconds)


def _lists(count: int, victim: Victim, seconds: float) -> Figures:
    with _host() as address:
        return _hoard(count, 0, address, victim, seconds)


ATTACKS: dict[str, Attack] = {
    "results": partial(_results, _CACHING),
    "lists": partial(_lists, _CALLED_BACK),
    "few results": partial(_results, _CACHING // 10),
    "few lists": partial(_lists, _CALLED_BACK // 10),
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
