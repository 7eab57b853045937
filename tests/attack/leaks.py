"""Mixed calls, sync and async, that end in every way, as often again: the second time must add nothing.

python -m tests.attack.leaks [--seconds 5] [--tree DIR]

4,000 calls for each of the seconds: 20,000 are the figure of a release, and some hundred do for CI.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import grpc

from invoker._pb.riff import riff_rpc_pb2 as pb
from tests.attack.runner import Figures, Victim, main
from tests.protocols.graphpipe.asking import ask

FUNCTIONS = "tests.attack.functions"

_CALLS_PER_S = 4000
_CLIENTS = 4
_PATIENCE_S = 30.0
_SETTLE_S = 15.0
_JSON = "application/json"


class Held:
    """What a victim holds at rest: memory, tasks, threads and descriptors."""

    def __init__(self, target: Victim) -> None:
        with closing(_Client(target)) as client:
            self.tasks = int(client.post("/", b"0", _JSON, "tasks"))
        status = Path(f"/proc/{target.process.pid}/status").read_text()
        self.threads = int(status.partition("Threads:")[2].split()[0])
        self.files = target.files
        self.rss_bytes = target.rss_bytes

    def __le__(self, other: Held) -> bool:
        """Whether it is no more, but for memory."""
        return self.tasks <= other.tasks and self.threads <= other.threads and self.files <= other.files


class _Client:
    """One client's connections, and its calls of all kinds."""

    def __init__(self, target: Victim) -> None:
        self._http = http.client.HTTPConnection(*target.http_host, timeout=_PATIENCE_S)
        self._channel = grpc.insecure_channel(target.grpc, [("grpc.use_local_subchannel_pool", 1)])
        self._invoke = self._channel.stream_stream(
            "/streaming.Riff/Invoke", pb.InputSignal.SerializeToString, pb.OutputSignal.FromString
        )
        tensor = ask([1.0, 2.0])
        self.kinds: list[Callable[[], object]] = [
            lambda: self._riff("kind", b"1"),
            lambda: self._riff("akind", b"1"),
            lambda: self._riff("kinds", b"1", b"[]", b"{}"),
            lambda: self._riff("kind", b"no JSON"),
            lambda: self._riff("akind", b"no JSON"),
            self._cancelled,
            lambda: self.post("/", b"[1]", _JSON, "kind"),
            lambda: self.post("/", b"[1]", _JSON, "akind"),
            lambda: self.post("/", b"no JSON", _JSON, "akind"),
            lambda: self.post("/graphpipe/kind", tensor, "application/octet-stream", ""),
            lambda: self.post("/graphpipe/kind", b"no buffer", "application/octet-stream", ""),
        ]

    def close(self) -> None:
        """Close both connections."""
        self._http.close()
        self._channel.close()

    def post(self, path: str, body: bytes, media_type: str, function: str) -> bytes:
        """One HTTP request."""
        self._http.request("POST", path, body, {"Content-Type": media_type, "Invoker-Function": function})
        return self._http.getresponse().read()

    def _riff(self, function: str, *payloads: bytes) -> None:
        signals = [pb.InputSignal(start=pb.StartFrame(expectedContentTypes=["*/*"]))]
        signals += [pb.InputSignal(data=pb.InputFrame(payload=one, contentType=_JSON)) for one in payloads]
        call = self._invoke(iter(signals), metadata=(("invoker-function", function),), timeout=_PATIENCE_S)
        _drained(call)

    def _cancelled(self) -> None:
        """A call that is cancelled once it runs, while both of its inputs are open."""
        over = threading.Event()

        def signals() -> Iterator[pb.InputSignal]:
            yield pb.InputSignal(start=pb.StartFrame(expectedContentTypes=["*/*"], inputNames=["values", "signal"]))
            yield pb.InputSignal(data=pb.InputFrame(payload=b"1", contentType=_JSON, argIndex=1))
            over.wait(_PATIENCE_S)

        call = self._invoke(signals(), metadata=(("invoker-function", "deaf"),), timeout=_PATIENCE_S)
        next(call)
        call.cancel()
        over.set()
        _drained(call)


def _drained(call: grpc.RpcError) -> None:
    try:
        for _ in call:
            pass
    except grpc.RpcError:
        return


def leaks(target: Victim, seconds: float) -> Figures:
    """All kinds of calls in turn by four clients, twice; what is held after each time."""
    count = max(1, int(seconds * _CALLS_PER_S) // _CLIENTS)
    _run(target, 20)  # what is made once for all is made now
    first = _run(target, count)
    second = _run(target, count)
    deadline = time.monotonic() + _SETTLE_S  # idle threads leave by themselves, ten seconds after their last work
    while not second <= first and time.monotonic() < deadline:
        time.sleep(0.2)
        second = Held(target)
    return {
        "calls": 2 * count * _CLIENTS,
        "rss KiB": second.rss_bytes // 1024,
        "more KiB": (second.rss_bytes - first.rss_bytes) // 1024,
        "more tasks": second.tasks - first.tasks,
        "more threads": second.threads - first.threads,
        "more files": second.files - first.files,
    }


def _run(target: Victim, count: int) -> Held:
    problems: list[BaseException] = []

    def one() -> None:
        client = _Client(target)
        try:
            for number in range(count):
                client.kinds[number % len(client.kinds)]()
        except BaseException as error:
            problems.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=one) for _ in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return Held(target)


ATTACKS = {"leaks": leaks}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
