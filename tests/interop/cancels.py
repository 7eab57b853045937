"""How many calls that @grpc/grpc-js cancels are taken for complete: ``python -m tests.interop.cancels --calls 10000``.

A relay between the client and the server notes when each call's END_STREAM and RST_STREAM leave. A cancel whose
RST_STREAM leaves soon after must never commit (R-109); one that leaves later cannot be told from an end by anybody.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from invoker._pb.riff import riff_rpc_pb2 as pb
from tests.interop.aggregators import FILE
from tests.interop.tools import PROTO, run
from tests.serving import serving

MODULE = "tests.interop.aggregators"
DRIVERS = {
    "threads": (f"{MODULE}:total", "--grpc-driver", "fast"),
    "loop": (f"{MODULE}:atotal", "--grpc-driver", "fast"),
    "aio": (f"{MODULE}:atotal", "--grpc-driver", "aio"),
    "aio-threads": (f"{MODULE}:total", "--grpc-driver", "aio"),
}
SOON_S = 0.004
CLIENT = Path(__file__).parent / "cancels.js"
_PREFACE_BYTES, _HEAD_BYTES = 24, 9
_DATA, _RST_STREAM, _END_STREAM = 0, 3, 1


@dataclass
class Moments:
    """Of one call: what its input is called, and when END_STREAM left at the earliest, RST_STREAM at the latest."""

    name: str = ""
    ended: float | None = None
    reset: float | None = None


class Relay:
    """Carries one connection to a server, and notes the moments of its calls.

    Args:
        address: ``host:port`` of the server.

    Attributes:
        address: To connect to instead.
        calls: By stream.
    """

    def __init__(self, address: str) -> None:
        self.calls: dict[int, Moments] = {}
        self._onward = address.rpartition(":")
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, name="relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait until the connection is over."""
        self._thread.join(10)
        self._server.close()

    def _serve(self) -> None:
        client, _ = self._server.accept()
        with client, socket.create_connection((self._onward[0], int(self._onward[2]))) as server:
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=self._carry_back, args=(server, client), name="relay-back", daemon=True)
            back.start()
            rest, skip = b"", _PREFACE_BYTES
            while data := client.recv(1 << 16):
                before = time.perf_counter()
                server.sendall(data)
                rest += data
                if skip:
                    rest, skip = rest[skip:], 0
                rest = self._note(rest, before, time.perf_counter())
            server.shutdown(socket.SHUT_WR)
            back.join(10)

    def _carry_back(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(1 << 16):
                client.sendall(data)
        except OSError:
            return  # the client has left

    def _note(self, data: bytes, before: float, after: float) -> bytes:
        while len(data) >= _HEAD_BYTES:
            size, kind, flags = int.from_bytes(data[:3], "big"), data[3], data[4]
            if len(data) < _HEAD_BYTES + size:
                break
            stream, body = int.from_bytes(data[5:9], "big"), data[_HEAD_BYTES : _HEAD_BYTES + size]
            data = data[_HEAD_BYTES + size :]
            if not stream:
                continue
            call = self.calls.setdefault(stream, Moments())
            if kind == _DATA and body and not call.name:
                length = int.from_bytes(body[1:5], "big")
                call.name = pb.InputSignal.FromString(body[5 : 5 + length]).start.inputNames[0]
            if kind == _DATA and flags & _END_STREAM:
                call.ended = before
            if kind == _RST_STREAM:
                call.reset = after
        return data


@dataclass
class Cancels:
    """What became of cancelled calls.

    Attributes:
        codes: Of the client's statuses.
        soon_s: How long after END_STREAM an RST_STREAM comes soon.
        at_once: Calls reset without an END_STREAM before.
        soon: For calls reset within ``soon_s`` of their END_STREAM: whether each committed.
        late: The same for those that were reset later.
        gaps: Seconds between the two.
        odd: Commits of calls that were reset at once, or not at all.
    """

    codes: dict[str, int]
    soon_s: float
    at_once: int = 0
    soon: list[bool] = field(default_factory=list)
    late: list[bool] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    odd: int = 0

    def __str__(self) -> str:
        gaps = sorted(self.gaps) or [0.0]
        return (
            f"{sum(self.codes.values())} calls {self.codes}; RST_STREAM within {self.soon_s * 1e3:g} ms of END_STREAM: "
            f"{len(self.soon)}, of which {sum(self.soon)} committed; later: {len(self.late)}, {sum(self.late)} "
            f"committed; without END_STREAM: {self.at_once}; other commits: {self.odd}; gap median "
            f"{statistics.median(gaps) * 1e3:.2f} ms, 99 % {gaps[int(len(gaps) * 0.99)] * 1e3:.2f} ms, "
            f"most {gaps[-1] * 1e3:.2f} ms"
        )


def cancels(
    driver: str,
    calls: int,
    *,
    at_once: int = 20,
    within_ms: float = 20,
    soon_s: float = SOON_S,
    args: tuple[str, ...] = (),
) -> Cancels:
    """Let @grpc/grpc-js cancel calls of an aggregator, half of them by their deadline."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "commits")
        file.touch()
        with serving(*DRIVERS[driver], *args, env={FILE: str(file)}) as served:
            relay = Relay(served.grpc)
            codes = _client(relay.address, calls, at_once, within_ms, cancelled=True)["codes"]
            relay.close()
        committed = set(file.read_text().split())
    result = Cancels(codes, soon_s)
    for call in relay.calls.values():
        did_commit = call.name in committed
        if call.ended is None or call.reset is None:
            result.at_once += call.reset is not None
            result.odd += did_commit
            continue
        gap = call.reset - call.ended
        result.gaps.append(gap)
        (result.soon if gap <= soon_s else result.late).append(did_commit)
    return result


def ends(driver: str, calls: int, *, args: tuple[str, ...] = ()) -> list[float]:
    """Milliseconds from the half-close of @grpc/grpc-js to the status, for calls that end well one after the other."""
    with tempfile.TemporaryDirectory() as folder, serving(*DRIVERS[driver], *args, env={FILE: f"{folder}/x"}) as served:
        account = _client(served.grpc, calls, 1, 1, cancelled=False)
    assert account["codes"] == {"0": calls}, account["codes"]
    made: list[float] = account["ms"]
    return made


def _client(address: str, calls: int, at_once: int, within_ms: float, *, cancelled: bool) -> dict[str, dict[str, int]]:
    plan = {"address": address, "proto": str(PROTO), "calls": calls, "atOnce": at_once, "withinMs": within_ms}
    done = run("node", CLIENT, stdin=json.dumps(plan | {"cancelled": cancelled}), limit_s=20 + calls / 100)
    assert done.returncode == 0, done.stderr
    account: dict[str, dict[str, int]] = json.loads(done.stdout)
    return account


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.cancels", description=__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="cancelled calls on each driver")
    parser.add_argument("--drivers", nargs="*", choices=DRIVERS, default=list(DRIVERS))
    parser.add_argument("--settle-s", default="0.01", help="as the server's flag")
    given = parser.parse_args()
    args = ("--settle-s", given.settle_s)
    for driver in given.drivers:
        print(f"{driver}: {cancels(driver, given.calls, args=args)}", flush=True)
        for settle_s in (given.settle_s, "0"):
            took = sorted(ends(driver, 300, args=("--settle-s", settle_s)))
            median = statistics.median(took)
            print(f"{driver}: a call that ends well, settle {settle_s} s: {median:.2f} ms from half-close to status")


if __name__ == "__main__":
    main()
