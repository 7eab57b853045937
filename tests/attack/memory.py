"""Callers who make a process hold much: streams that nobody reads, tensors of a million strings, sessions, bodies.

python -m tests.attack.memory [streams strings bodies sessions] [--seconds 5] [--tree DIR]

Figures: the most memory while it lasted, how many callers were refused or ended, and memory ten seconds after the
last one was gone; with ``--seconds`` below 5 all is a quarter of the size.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Self

import grpc

from invoker._pb.evergreen import evergreen_pb2
from invoker._pb.riff import riff_rpc_pb2 as pb
from tests.attack.runner import MIB, Figures, Victim, main
from tests.conftest import SLOW
from tests.protocols.graphpipe.asking import ask
from tests.transports.evergreen import PATH, leaf

FUNCTIONS = "tests.attack.functions"

_FRAME = (1 << 20) - 1024
_PATIENCE_S = 60.0
_SETTLE_S = 10.0 * SLOW


class Peak:
    """The most memory that a victim has had, asked for every 10 ms."""

    def __init__(self, target: Victim) -> None:
        self.bytes = 0
        self._target = target
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(0.01):
            self.bytes = max(self.bytes, self._target.rss_bytes)


def settled(target: Victim, most_bytes: int = 200 * MIB, *, is_long: bool = False) -> tuple[int, float]:
    """Memory ten seconds after the last client has gone, and how long it took to be below that.

    Args:
        target: Whose.
        most_bytes: It is below that soon.
        is_long: Wait for the ten seconds in any case, and no longer, as tables have it; else, as tests do, only until
            it is below that.
    """
    began, took_s = time.monotonic(), 0.0
    while (passed_s := time.monotonic() - began) < (10.0 if is_long else _SETTLE_S):
        now = target.rss_bytes
        if now > most_bytes:
            took_s = passed_s
        elif not is_long:
            break
        time.sleep(0.05)
    return now, took_s


def streams(target: Victim, seconds: float) -> Figures:
    """Streams of 63 MiB for an input that is not read, because the function waits for its other one (R-129)."""
    count, size = (24, 63) if seconds >= 5 else (12, 32)

    def one(hold: threading.Event) -> str:
        cancelled = threading.Event()

        def signals() -> Iterator[pb.InputSignal]:
            yield pb.InputSignal(
                start=pb.StartFrame(expectedContentTypes=["text/plain"], inputNames=["values", "signal"])
            )
            payload = bytes(_FRAME)
            for _ in range(size):
                data = pb.InputFrame(payload=payload, contentType="application/octet-stream", argIndex=0)
                yield pb.InputSignal(data=data)
            cancelled.wait(_PATIENCE_S)  # a half-close before the cancel would end the stream with OK

        with grpc.insecure_channel(target.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            invoke = channel.stream_stream(
                "/streaming.Riff/Invoke", pb.InputSignal.SerializeToString, pb.OutputSignal.FromString
            )
            call = invoke(signals(), metadata=(("invoker-function", "deaf"),))
            return _held(call, hold, cancelled)

    return _together(target, count, one, seconds)


def sessions(target: Victim, seconds: float) -> Figures:
    """Evergreen sessions whose nodes no action asks for."""
    count, size = (12, 100) if seconds >= 5 else (6, 64)

    def one(hold: threading.Event) -> str:
        cancelled = threading.Event()

        def messages() -> Iterator[evergreen_pb2.SessionMessage]:
            payload = bytes(_FRAME)
            for seq in range(size):
                fragment = leaf("n", payload, seq, more=True, media_type="application/octet-stream")
                yield evergreen_pb2.SessionMessage(node_fragments=[fragment])
            cancelled.wait(_PATIENCE_S)

        with grpc.insecure_channel(target.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            start = channel.stream_stream(
                PATH,
                evergreen_pb2.SessionMessage.SerializeToString,
                evergreen_pb2.SessionMessage.FromString,
            )
            return _held(start(messages()), hold, cancelled)

    return _together(target, count, one, seconds)


def _held(call: Any, hold: threading.Event, cancelled: threading.Event) -> str:
    """Read a call to its end, or cancel it when the others are still, too; its status."""

    def cancel() -> None:
        hold.wait(_PATIENCE_S)
        call.cancel()
        cancelled.set()

    threading.Thread(target=cancel).start()
    try:
        for _ in call:
            pass
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


def _post(target: Victim, path: str, body: bytes, media_type: str, function: str) -> str:
    connection = http.client.HTTPConnection(*target.http_host, timeout=_PATIENCE_S)
    try:
        headers = {"Content-Type": media_type, "Invoker-Function": function}
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        response.read()
        return str(response.status)
    except OSError:
        return "lost"
    finally:
        connection.close()


def strings(target: Victim, seconds: float) -> Figures:
    """Tensors of a million short strings for GraphPipe."""
    body = ask([b"%d" % one for one in range(1_000_000)])
    return _together(
        target,
        32 if seconds >= 5 else 6,
        lambda _: _post(target, "/graphpipe/slow", body, "application/octet-stream", "slow"),
        seconds,
    )


def bodies(target: Victim, seconds: float) -> Figures:
    """GraphPipe bodies of 60 MiB that stop before their last byte."""
    size = 60 * MIB if seconds >= 5 else 30 * MIB

    def one(hold: threading.Event) -> str:
        connection = http.client.HTTPConnection(*target.http_host, timeout=_PATIENCE_S)
        try:
            connection.putrequest("POST", "/graphpipe/slow")
            connection.putheader("Content-Length", str(size))
            connection.endheaders()
            piece = bytes(_FRAME)
            for _ in range(size // len(piece) - 1):
                connection.send(piece)
            connection.sock.settimeout(max(1.0, seconds) * SLOW)
            return str(connection.getresponse().status)
        except TimeoutError:
            return "held"
        except OSError:
            return "lost"
        finally:
            connection.close()

    return _together(target, 20, one, seconds)


def _together(target: Victim, count: int, one: Callable[[threading.Event], str], seconds: float) -> Figures:
    found: list[str] = []  # to add to a number would not be safe from other threads
    hold = threading.Event()

    def run() -> None:
        found.append(one(hold))

    threads = [threading.Thread(target=run) for _ in range(count)]
    with Peak(target) as peak:
        for thread in threads:
            thread.start()
        wait_until_still(target, threads, max(seconds, 1.0))
        hold.set()
        for thread in threads:
            thread.join()
    after, took_s = settled(target)
    figures: Figures = {"peak MiB": peak.bytes // MIB, "after MiB": after // MIB, "settled s": round(took_s, 1)}
    assert len(found) == count, "a caller has failed"
    return {**figures, **dict(sorted(Counter(found).items()))}


def wait_until_still(target: Victim, threads: list[threading.Thread], seconds: float) -> None:
    """Until for so long no caller has ended and the victim's memory has stayed the same."""
    began = changed = time.monotonic()
    was = (0, 0)
    while (now := time.monotonic()) - changed < seconds and now - began < _PATIENCE_S / 2:
        alive = sum(thread.is_alive() for thread in threads)
        if threads and not alive:
            return
        if (seen := (alive, target.rss_bytes // MIB)) != was:
            was, changed = seen, now
        time.sleep(0.01)


ATTACKS = {"streams": streams, "strings": strings, "bodies": bodies, "sessions": sessions}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
