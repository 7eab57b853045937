"""Mixed calls for a long time: memory of the process is level once it has grown warm.

python -m tests.attack.steady [--seconds 600] [--tree DIR]

Calls of every kind and wire of `tests.attack.callers`, small and large, that end well, fail, are taken back or are not
read, by four clients of twenty calls a second all together, on connections of their own; beside them small calls on
connections that stay, of which half time out, and slow readers of SSE and NDJSON, which leave. The process takes a
seventh of a core for it.

Figures are of sixty windows: the least and the most memory that the process had within each, and that of its children
at its end; what `/metrics` says at the end of all; by how much the highest of the last third is above that of the
middle third, and by how much the line through the second half rises, both of the least of each window.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import grpc

from invoker._pb.riff import riff_rpc_pb2 as pb
from tests.attack.callers import CALLS, ENDS
from tests.attack.runner import MIB, Figures, Victim, main
from tests.conftest import SLOW
from tests.transports.riff import PATH, data, start

ARGS = ("tests.attack.mixed", "--graphpipe-tcp", "127.0.0.1:0")

_WINDOWS = 60
_LOOK_S = 0.25
_CLIENTS = 4
_CALL_EVERY_S = 0.2
"""Of each client."""
_SMALL_EVERY_S = 0.1
_SIZES = (200, 64 << 10, 1 << 20)
_SIZE_WEIGHTS = (6, 3, 1)
_ISOLATED = 0.15
"""How often an isolated function is called in comparison with others; one that is taken back costs a child."""
_PIECE = 4096
_PIECE_EVERY_S = 0.25
_PIECES = 20
_PATIENCE_S = 20.0 * SLOW
_OCTETS = "application/octet-stream"


@dataclass
class _Load:
    """What the clients have done so far."""

    calls: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, what: str, error: BaseException | None = None) -> None:
        """A call is over."""
        with self.lock:
            self.calls[what] = self.calls.get(what, 0) + 1
            if error is not None:
                self.problems.append(f"{what}: {error!r}"[:300])


Client: TypeAlias = Callable[[Victim, threading.Event, _Load], None]


@dataclass(frozen=True)
class _Window:
    """A sixtieth of the time.

    Attributes:
        least_bytes: Of the process within it.
        most_bytes: Likewise.
        children_bytes: Of its children, at the end.
        numbers: Of `/metrics`, at the end.
    """

    least_bytes: int
    most_bytes: int
    children_bytes: int
    numbers: dict[str, float]


def _kinds() -> tuple[list[tuple[str, str]], list[float]]:
    kinds = [(wire, name) for wire, name in CALLS if not (wire == "graphpipe tcp" and name != "echo")]
    return kinds, [_ISOLATED if name.startswith("i") else 1.0 for _, name in kinds]


def _mixed(seed: int, victim: Victim, is_over: threading.Event, load: _Load) -> None:
    """Calls by chance, each on a connection of its own."""
    chance = Random(seed)
    kinds, weights = _kinds()
    due_s = time.monotonic()
    while not is_over.wait(max(0.0, due_s - time.monotonic())):
        due_s = max(due_s, time.monotonic() - 1) + _CALL_EVERY_S
        wire, name = chance.choices(kinds, weights)[0]
        end = chance.choice(list(ENDS))
        size = chance.choices(_SIZES, _SIZE_WEIGHTS)[0]
        try:
            CALLS[wire, name](victim, name, ENDS[end] + bytes(size - 1))
            load.tell(end)
        except Exception as error:
            load.tell(f"{wire} {name} {end} {size}", error)


def _small(victim: Victim, is_over: threading.Event, load: _Load) -> None:
    """Small calls over HTTP and riff on two connections that stay; some time out."""
    connection = http.client.HTTPConnection(*victim.http_host, timeout=_PATIENCE_S)
    with grpc.insecure_channel(victim.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        invoke: Any = channel.stream_stream(PATH, None, pb.OutputSignal.FromString)
        for number in count():
            if is_over.wait(_SMALL_EVERY_S):
                break
            name = ("echo", "aecho", "late", "alate")[number // 2 % 4]
            try:
                if number % 2:
                    connection.request("POST", f"/{name}", b"g", {"Content-Type": _OCTETS})
                    response = connection.getresponse()
                    response.read()
                    well = response.status == (504 if "late" in name else 200)
                else:
                    messages = iter([start(), data(b"g")])
                    call = invoke(messages, metadata=(("invoker-function", name),), timeout=_PATIENCE_S)
                    well = _status(call) == ("DEADLINE_EXCEEDED" if "late" in name else "OK")
                load.tell("small", None if well else AssertionError(name))
            except Exception as error:
                load.tell(f"small {name}", error)
    connection.close()


def _status(call: Any) -> str:
    try:
        for _ in call:
            pass
    except grpc.RpcError:
        pass
    return str(call.code().name)


def _slow(accept: str, victim: Victim, is_over: threading.Event, load: _Load) -> None:
    """One reader after the other, of 16 KiB a second, who leaves after five."""
    for number in count():
        name = ("gives", "agives")[number % 2]
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(_PATIENCE_S)
            sock.connect(victim.http_host)
            head = f"GET /{name}?size=400000&count=3 HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n"
            sock.sendall(head.encode())
            for _ in range(_PIECES):
                if is_over.wait(_PIECE_EVERY_S):
                    return
                if not sock.recv(_PIECE):
                    load.tell("slow", AssertionError("the response has ended"))
                    break
        load.tell("slow")


def _children_bytes(pid: int) -> int:
    """Memory of the programs that a process has started, and so on."""
    found = 0
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += (task / "children").read_text().split()
    except OSError:
        return found
    for child in set(children):
        try:
            found += int(Path(f"/proc/{child}/statm").read_text().split()[1]) * 4096
        except OSError:  # it has just ended
            continue
        found += _children_bytes(int(child))
    return found


def _numbers(victim: Victim) -> dict[str, float]:
    connection = http.client.HTTPConnection(*victim.http_host, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    finally:
        connection.close()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if name[:1] != "#"}


def _window(victim: Victim, seconds: float) -> _Window:
    until_s = time.monotonic() + seconds
    least = most = victim.rss_bytes
    while time.monotonic() < until_s:
        time.sleep(min(_LOOK_S, seconds))
        now = victim.rss_bytes
        least, most = min(least, now), max(most, now)
    return _Window(least, most, _children_bytes(victim.process.pid), _numbers(victim))


def above(values: Sequence[int]) -> int:
    """How much the highest of the last third is above that of the middle third."""
    third = len(values) // 3
    return max(values[-third:]) - max(values[-2 * third : -third])


def rise(values: Sequence[int]) -> float:
    """By how much they grow over their second half, by the least squares."""
    second = values[len(values) // 2 :]
    middle = (len(second) - 1) / 2
    mean = sum(second) / len(second)
    spread = sum((at - middle) ** 2 for at in range(len(second)))
    slope = sum((at - middle) * (one - mean) for at, one in enumerate(second)) / spread
    return slope * (len(second) - 1)


def steady(victim: Victim, seconds: float) -> Figures:
    """Mixed calls for so long; what the process holds meanwhile."""
    load, is_over = _Load(), threading.Event()
    clients: list[Client] = [
        *(partial(_mixed, seed) for seed in range(_CLIENTS)),
        _small,
        *(partial(_slow, accept) for accept in ("text/event-stream", "application/x-ndjson")),
    ]
    threads = [threading.Thread(target=one, args=(victim, is_over, load)) for one in clients]
    for thread in threads:
        thread.start()
    began_s = victim.cpu_s
    try:
        windows = [_window(victim, seconds / _WINDOWS) for _ in range(_WINDOWS)]
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    return {**_figures(windows, load), "cpu": round((victim.cpu_s - began_s) / seconds, 2)}


def _figures(windows: Sequence[_Window], load: _Load) -> Figures:
    least, most = [one.least_bytes for one in windows], [one.most_bytes for one in windows]
    last = windows[-1].numbers
    return {
        "calls": sum(load.calls.values()),
        "problems": len(load.problems),
        "first problem": load.problems[0] if load.problems else "",
        "above MiB": round(above(least) / MIB, 1),
        "rise MiB": round(rise(least) / MIB, 1),
        "least MiB": " ".join(str(one // MIB) for one in least),
        "most MiB": " ".join(str(one // MIB) for one in most),
        "children MiB": " ".join(str(one.children_bytes // MIB) for one in windows),
        **{
            name.removeprefix("invoker_"): int(last.get(name, -1))
            for name in ("invoker_running_invocations", "invoker_busy_threads", "invoker_tool_sessions")
        },
    }


ATTACKS = {"steady": steady}

if __name__ == "__main__":
    main(ATTACKS, *ARGS)
