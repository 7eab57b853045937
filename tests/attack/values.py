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
from tests.attack.runner import IS_LONG, Figures, Victim, main

FUNCTIONS = "tests.attack.dear"
JSON = "application/json"

_AT_ONCE = 4 if IS_LONG else 2
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


def attack(make: Callable[[], Send], *, at_once: int = _AT_ONCE) -> Callable[[Victim, float], Figures]:
    """A few of these at once, over and over; the request is made when the attack begins, since it is large."""

    def run(target: Victim, seconds: float) -> Figures:
        send = make()
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


def _large() -> bytes:
    return numbers(b"1e308")


def _tiny() -> bytes:
    return numbers(b"17e-320")


def _lines() -> bytes:
    return b"\n".join([numbers(b"1e308", 8000)] * (_BYTES // 8000))


def _event() -> bytes:
    return b'{"specversion":"1.0","id":"1","source":"x","type":"y","data":%b}' % _large()


def _form() -> bytes:
    part = b'--x\r\nContent-Disposition: form-data; name="value"\r\nContent-Type: application/json\r\n\r\n'
    return part + _large() + b"\r\n--x--\r\n"


def _hollow() -> bytes:
    return b",".join([b"[]"] * 1_300_000)


def _text() -> bytes:
    return json.dumps("a line\n" * 500_000).encode()


def _ids() -> bytes:
    return json.dumps([str(UUID(int=1 + one * _PRIME)) for one in range(20_000)]).encode()


def _decimals() -> bytes:
    return json.dumps([1 + one * _PRIME for one in range(40_000)]).encode()


_DEEP = b"[" * 100_000 + b"]" * 100_000
_SPACES = json.dumps(" " * 65_500 + "x").encode()
_PRIME = sys.hash_info.modulus
_CONNECT = "/tests.attack.dear.DearService/"


def riff(body: bytes, function: str) -> Send:
    """One riff call."""
    return lambda target: over_grpc(target, body, JSON, function)


def root(body: bytes, function: str) -> Send:
    """One request at the root."""
    return lambda target: over_http(target, body, JSON, function)


ATTACKS: dict[str, Callable[[Victim, float], Figures]] = {
    "any": attack(lambda: post("/kind", _large())),
    "any-tiny": attack(lambda: post("/kind", _tiny())),
    "any-root": attack(lambda: root(_large(), "kind")),
    "any-loop": attack(lambda: post("/akind", _large())),
    "any-riff": attack(lambda: riff(_large(), "kind")),
    "any-riff-loop": attack(lambda: riff(_large(), "akind")),
    "floats": attack(lambda: post("/floats", _large())),
    "floats-loop": attack(lambda: post("/afloats", _tiny())),
    "model": attack(lambda: post("/modelled", b'{"xs":%b}' % _large())),
    "array": attack(lambda: post("/twice", _large())),
    "array-riff": attack(lambda: riff(_tiny(), "twice")),
    "lines": attack(lambda: post("/kinds", _lines(), "application/x-ndjson", Accept="application/x-ndjson")),
    "event": attack(lambda: post("/kind", _event(), "application/cloudevents+json")),
    "form": attack(lambda: post("/kind", _form(), "multipart/form-data; boundary=x")),
    "ids": attack(lambda: post("/ids", _ids())),
    "ids-riff": attack(lambda: riff(_ids(), "ids")),
    "ids-connect": attack(lambda: post(_CONNECT + "Ids", b'{"xs":%b}' % _ids())),
    "decimals": attack(lambda: post("/decimals", _decimals())),
    "named": attack(lambda: post("/named", json.dumps(dict.fromkeys(json.loads(_ids()), 1)).encode())),
    "pattern-squared": attack(lambda: post("/squared", _SPACES)),
    "pattern-squared-most": attack(lambda: post("/squared", json.dumps(" " * 2047 + "x").encode())),
    "pattern-squared-riff": attack(lambda: riff(_SPACES, "squared")),
    "pattern-cubed": attack(lambda: post("/cubed", json.dumps("cd" * 32_000).encode())),
    "pattern-cubed-most": attack(lambda: post("/cubed", json.dumps("cd" * 128).encode())),
    "pattern-deep": attack(lambda: post("/deep", json.dumps([" " * 65_500 + "x"]).encode())),
    "pattern-connect": attack(lambda: post(_CONNECT + "Squared", json.dumps({"text": " " * 65_500 + "x"}).encode())),
    "texts": attack(lambda: post("/boom", _text())),
    "texts-loop": attack(lambda: post("/aboom", _text())),
    "texts-isolated": attack(lambda: post("/isolated_boom", _text())),
    "texts-riff": attack(lambda: riff(_text(), "boom")),
    "texts-connect": attack(lambda: post(_CONNECT + "Boom", b'{"text":%b}' % _text())),
    "connect": attack(lambda: post(_CONNECT + "Floats", b'{"xs":%b}' % _large())),
    "connect-any": attack(lambda: post(_CONNECT + "Kind", b'{"value":%b}' % _large())),
    "connect-loop": attack(lambda: post(_CONNECT + "Afloats", b'{"xs":%b}' % numbers(b"1"))),
    "connect-many": attack(lambda: post(_CONNECT + "Kind", b'{"value":[%b]}' % _hollow())),
    "connect-deep": attack(lambda: post(_CONNECT + "Kind", b'{"value":%b}' % _DEEP)),
}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS)
