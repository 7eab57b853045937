"""Values that cost more than their bytes: bodies of 4 MB of numbers, sets and texts, over every wire.

python -m tests.attack.values [NAME ...] [--seconds 5] [--tree DIR]
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from uuid import UUID

from tests.attack.decodes import over_grpc, over_http
from tests.attack.runner import Figures, Victim, main

__all__ = ["ATTACKS", "FUNCTIONS"]

FUNCTIONS = "tests.attack.dear"
JSON = "application/json"

_AT_ONCE = 4
_BYTES = 4_000_000
_PATIENCE_S = 60.0

Send = Callable[[Victim], int]


def numbers(one: bytes, size: int = _BYTES) -> bytes:
    """A list of the same number."""
    return b"[" + b",".join([one] * (size // (len(one) + 1))) + b"]"


def post(path: str, body: bytes, media_type: str = JSON, **headers: str) -> Send:
    """One request over HTTP; the status of its response."""

    def send(target: Victim) -> int:
        connection = http.client.HTTPConnection(*target.http_host, timeout=_PATIENCE_S)
        try:
            connection.request("POST", path, body, {"Content-Type": media_type, **headers})
            response = connection.getresponse()
            assert len(response.read()) < 16_000
            return response.status
        finally:
            connection.close()

    return send


def attack(send: Send, *, at_once: int = _AT_ONCE) -> Callable[[Victim, float], Figures]:
    """A few of these at once, over and over."""

    def run(target: Victim, seconds: float) -> Figures:
        statuses: Counter[int] = Counter()
        until = time.monotonic() + seconds

        def one() -> None:
            while True:
                statuses[send(target)] += 1
                if time.monotonic() >= until:
                    return

        threads = [threading.Thread(target=one) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {f"status {status}": count for status, count in sorted(statuses.items())}

    return run


_LARGE = numbers(b"1e308")
_TINY = numbers(b"17e-320")
_LINES = b"\n".join([numbers(b"1e308", 8000)] * (_BYTES // 8000))
_EVENT = b'{"specversion":"1.0","id":"1","source":"x","type":"y","data":%b}' % _LARGE
_PART = b'--x\r\nContent-Disposition: form-data; name="value"\r\nContent-Type: application/json\r\n\r\n'
_FORM = _PART + _LARGE + b"\r\n--x--\r\n"
_HOLLOW = b",".join([b"[]"] * 1_300_000)
_DEEP = b"[" * 100_000 + b"]" * 100_000
_TEXT = json.dumps("a line\n" * 500_000).encode()
_PRIME = sys.hash_info.modulus
_IDS = json.dumps([str(UUID(int=1 + one * _PRIME)) for one in range(20_000)]).encode()
_CONNECT = "/tests.attack.dear.DearService/"


def riff(body: bytes, function: str) -> Send:
    """One riff call."""
    return lambda target: over_grpc(target, body, JSON, function)


def root(body: bytes, function: str) -> Send:
    """One request at the root."""
    return lambda target: over_http(target, body, JSON, function)


ATTACKS: dict[str, Callable[[Victim, float], Figures]] = {
    "any": attack(post("/kind", _LARGE)),
    "any-tiny": attack(post("/kind", _TINY)),
    "any-root": attack(root(_LARGE, "kind")),
    "any-loop": attack(post("/akind", _LARGE)),
    "any-riff": attack(riff(_LARGE, "kind")),
    "any-riff-loop": attack(riff(_LARGE, "akind")),
    "floats": attack(post("/floats", _LARGE)),
    "floats-loop": attack(post("/afloats", _TINY)),
    "model": attack(post("/modelled", b'{"xs":%b}' % _LARGE)),
    "array": attack(post("/twice", _LARGE)),
    "array-riff": attack(riff(_TINY, "twice")),
    "lines": attack(post("/kinds", _LINES, "application/x-ndjson", Accept="application/x-ndjson")),
    "event": attack(post("/kind", _EVENT, "application/cloudevents+json")),
    "form": attack(post("/kind", _FORM, "multipart/form-data; boundary=x")),
    "ids": attack(post("/ids", _IDS)),
    "ids-riff": attack(riff(_IDS, "ids")),
    "ids-connect": attack(post(_CONNECT + "Ids", b'{"xs":%b}' % _IDS)),
    "decimals": attack(post("/decimals", json.dumps([1 + one * _PRIME for one in range(40_000)]).encode())),
    "named": attack(post("/named", json.dumps(dict.fromkeys(json.loads(_IDS), 1)).encode())),
    "pattern-squared": attack(post("/squared", json.dumps(" " * 65_500 + "x").encode())),
    "pattern-squared-most": attack(post("/squared", json.dumps(" " * 2047 + "x").encode())),
    "pattern-squared-riff": attack(riff(json.dumps(" " * 65_500 + "x").encode(), "squared")),
    "pattern-cubed": attack(post("/cubed", json.dumps("cd" * 32_000).encode())),
    "pattern-cubed-most": attack(post("/cubed", json.dumps("cd" * 128).encode())),
    "pattern-deep": attack(post("/deep", json.dumps([" " * 65_500 + "x"]).encode())),
    "pattern-connect": attack(post(_CONNECT + "Squared", json.dumps({"text": " " * 65_500 + "x"}).encode())),
    "texts": attack(post("/boom", _TEXT)),
    "texts-loop": attack(post("/aboom", _TEXT)),
    "texts-isolated": attack(post("/isolated_boom", _TEXT)),
    "texts-riff": attack(riff(_TEXT, "boom")),
    "texts-connect": attack(post(_CONNECT + "Boom", b'{"text":%b}' % _TEXT)),
    "connect": attack(post(_CONNECT + "Floats", b'{"xs":%b}' % _LARGE)),
    "connect-any": attack(post(_CONNECT + "Kind", b'{"value":%b}' % _LARGE)),
    "connect-loop": attack(post(_CONNECT + "Afloats", b'{"xs":%b}' % numbers(b"1"))),
    "connect-many": attack(post(_CONNECT + "Kind", b'{"value":[%b]}' % _HOLLOW)),
    "connect-deep": attack(post(_CONNECT + "Kind", b'{"value":%b}' % _DEEP)),
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
