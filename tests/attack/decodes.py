"""Bodies that are cheap to send and dear to decode: 4 MiB of empty arrays, sixteen at a time.

python -m tests.attack.decodes [json-http msgpack-http json-grpc msgpack-grpc ...] [--seconds 5] [--tree DIR]
"""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import grpc

from invoker._pb.riff import riff_rpc_pb2 as pb
from tests.attack.runner import Figures, Victim, main

FUNCTIONS = "tests.attack.functions"
JSON = "application/json"
MSGPACK = "application/msgpack"

_AT_ONCE = 16
_BYTES = (4 << 20) - 4096
_PATIENCE_S = 60.0


def bomb(media_type: str, size: int = _BYTES) -> bytes:
    """As many empty arrays as fit."""
    if media_type == JSON:
        return b"[" + b",".join([b"[]"] * (size // 3)) + b"]"
    return b"\xdd" + size.to_bytes(4, "big") + b"\x90" * size


def noise(size: int = _BYTES) -> bytes:
    """Numbers whose bytes look like arrays, so that all of them must be looked at; they are decoded."""
    count = size // 9
    return b"\xdd" + count.to_bytes(4, "big") + (b"\xcf" + b"\x90" * 8) * count


def hidden(size: int = _BYTES) -> bytes:
    """Short binary values in the longest way to write them, so that each must be passed by itself."""
    count = size // 21
    return b"\xdd" + count.to_bytes(4, "big") + (b"\xc6\x00\x00\x00\x10" + b"\x90" * 16) * count


def over_http(
    target: Victim, body: bytes, media_type: str, function: str, *, path: str = "/", accept: str = "*/*"
) -> int:
    """Send one request; the status of its response."""
    connection = http.client.HTTPConnection(*target.http_host, timeout=_PATIENCE_S)
    try:
        headers = {"Content-Type": media_type, "Invoker-Function": function, "Accept": accept}
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def over_grpc(target: Victim, body: bytes, media_type: str, function: str, *, accept: str = "*/*") -> int:
    """Make one riff call; its status."""
    with grpc.insecure_channel(target.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        invoke = channel.stream_stream(
            "/streaming.Riff/Invoke", pb.InputSignal.SerializeToString, pb.OutputSignal.FromString
        )
        start = pb.StartFrame(expectedContentTypes=[accept])
        data = pb.InputFrame(payload=body, contentType=media_type)
        signals = iter((pb.InputSignal(start=start), pb.InputSignal(data=data)))
        call = invoke(signals, metadata=(("invoker-function", function),), timeout=_PATIENCE_S)
        try:
            for _ in call:
                pass
        except grpc.RpcError as error:
            return int(error.code().value[0])
        return 0


def attack(
    send: Callable[..., int], make: Callable[[], bytes], media_type: str, function: str
) -> Callable[..., Figures]:
    """Sixteen of these at once, over and over; the body is made when the attack begins, since it is large."""

    def run(target: Victim, seconds: float) -> Figures:
        body = make()
        answers: list[int] = []  # to add to a number would not be safe from other threads
        until = time.monotonic() + seconds

        def one() -> None:
            while True:
                answers.append(send(target, body, media_type, function))
                if time.monotonic() >= until:
                    return

        threads = [threading.Thread(target=one) for _ in range(_AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {f"status {status}": count for status, count in sorted(Counter(answers).items())}

    return run


ATTACKS = {
    "json-http": attack(over_http, partial(bomb, JSON), JSON, "kind"),
    "msgpack-http": attack(over_http, partial(bomb, MSGPACK), MSGPACK, "kind"),
    "json-grpc": attack(over_grpc, partial(bomb, JSON), JSON, "kind"),
    "msgpack-grpc": attack(over_grpc, partial(bomb, MSGPACK), MSGPACK, "kind"),
    "json-loop": attack(over_http, partial(bomb, JSON), JSON, "akind"),
    "msgpack-loop": attack(over_grpc, partial(bomb, MSGPACK), MSGPACK, "akind"),
    "many-http": attack(over_http, partial(bomb, MSGPACK, 249_000), MSGPACK, "kind"),
    "noise-http": attack(over_http, noise, MSGPACK, "kind"),
    "noise-loop": attack(over_grpc, noise, MSGPACK, "akind"),
    "hidden-loop": attack(over_grpc, hidden, MSGPACK, "akind"),
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
