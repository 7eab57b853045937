"""Draws what is sent on a connection of HTTP/1.1: good requests, ones that two programs may read differently, garbage.

Each draw has a label, which says what is odd about it, so that a difference can be told in a few words.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

SENTINEL = (
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    b"Connection: close\r\n\r\n91"
)
"""The last request on each connection: whether it is answered tells where the requests before it ended."""

SENTINEL_BODY = b"8281"

_METHODS = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "post", "P0ST", "PO ST", "", "PRI", "CONNECT", "TRACE", "P\0ST")
_TARGETS = (
    *("/?x=1", "/livez", "/nothing/here", "http://localhost/", "HTTP://LOCALHOST:80/?a", "*", "/%00", "/a b", "//", ""),
    *("/\x7f", "/\xe9", "/" + "a" * 9000, "localhost:80", "/..;/", "/#part", "?x", "https://other/", "/%zz", "/\t"),
)
_VERSIONS = ("HTTP/1.0", "HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/1.1 ", "http/1.1", "", "HTTP/11", "HTTP/1.10", "X")
_HOSTS = ("", "localhost:80", "LOCALHOST", "other", "a b", "localhost\0", "user@localhost", "[::1]", "localhost:x", "/")
_CONNECTIONS = ("keep-alive", "close", "Close", "close, x", "Keep-Alive, Upgrade", "upgrade", "", "x", "te, close")
_EXPECTS = ("100-continue", "100-Continue", "200-ok", "")
_TYPES = ("text/plain", "application/json; charset=utf-8", "", "nonsense", "a/b", "application/x-www-form-urlencoded")
_ACCEPTS = ("*/*", "text/plain", "application/json;q=0.1, */*", "image/png", "", ",", ";q", "application/json;q=x")
_LENGTHS = (
    *("+{n}", "0x{n}", "-1", "{n};", "", "{n}, {n}", "{n},", "{n} {n}", "0{n}", "{n}.0", "\x0b{n}", "{n}\x0c"),
    *("9" * 25, "{less}", "{more}", "\u0661"),
)
_CODINGS = (
    *("gzip, chunked", "chunked, chunked", "Chunked", "identity", "chunked, identity", "xchunked", "chunked;q=1"),
    *("", ",chunked", "chunked,", "\x0bchunked", '"chunked"', "chun ked"),
)
_SIZES = (
    *("0x{x}", "{x} ", " {x}", "-{x}", "g", "", "0000{x}", "{x};a=1", "{x};", '{x};a="\r\n"', "{x}\n", "+{x}"),
    *("F" * 17, "{x}\r", "{x}\t", "{x};a\0", "{x}" + ";a" * 3000, "1{x}", "0"),
)
_LINES = (
    *(
        "X-A : 1",
        "X-A\t: 1",
        ": 1",
        "X-A",
        "X A: 1",
        "X-A: 1\r\n folded",
        " X-A: 1",
        "X-A: \0",
        "X-A: a\x0bb",
        "X-\xe9: 1",
    ),
    *(
        "X-A: \xe9",
        "X-A: a\rb",
        "X-A: a\nb",
        "X-A:",
        "X-A: " + "a" * 5000,
        "X-A: " + "a" * 70_000,
        "X(: 1",
        "X-A:\t1\t",
    ),
    *("Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA", "Upgrade: websocket", "TE: trailers", "Trailer: X-B"),
    *(
        "Content-Encoding: gzip",
        "Content-Encoding: br",
        "Accept-Encoding: gzip",
        "Accept-Encoding: identity;q=0",
        "Accept-Encoding: identity;q=0, gzip",
        "ce-specversion: 1.0",
        "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "traceparent: ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "Range: bytes=0-0",
        "X-Forwarded-Host: x",
        "X-A: 1\r\n\tfolded",
        "\x7f: 1",
        "X-A: \x7f",
    ),
)


class Draw(NamedTuple):
    """What is sent on one connection, before the sentinel."""

    label: str
    data: bytes


def draw(random: Random) -> Draw:
    """Draw some requests, of which some are odd."""
    labels, parts = [], []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        label, data = _request(random)
        if random.random() < 0.08:
            kind, data = _mutated(random, data)
            label += kind
        labels.append(label or "good")
        parts.append(data)
    return Draw(" | ".join(labels), b"".join(parts))


def _request(random: Random) -> tuple[str, bytes]:
    label: list[str] = []

    def odd(name: str, usual: str, others: tuple[str, ...], chance: float) -> str:
        if random.random() >= chance:
            return usual
        chosen = random.choice(others)
        label.append(f"{name} {chosen[:24]!r}")
        return chosen

    lines = [
        " ".join(
            (
                odd("method", "POST", _METHODS, 0.12),
                odd("target", "/", _TARGETS, 0.12),
                odd("version", "HTTP/1.1", _VERSIONS, 0.08),
            )
        )
    ]
    hosts = [odd("host", "localhost", _HOSTS, 0.06)]
    if random.random() < 0.04:
        label.append("hosts")
        hosts = random.choice(([], hosts * 2, [*hosts, "other"]))
    lines += [f"Host: {host}" for host in hosts]
    lines.append("Content-Type: " + odd("type", "application/json", _TYPES, 0.08))
    for name, values, chance in (
        ("Connection", _CONNECTIONS, 0.15),
        ("Expect", _EXPECTS, 0.05),
        ("Accept", _ACCEPTS, 0.1),
    ):
        if random.random() < chance:
            lines.append(f"{name}: {odd(name, '', values, 1)}")
    if random.random() < 0.15:
        lines.append(odd("line", "", _LINES, 1))
    if random.random() < 0.02:
        label.append("many lines")
        lines += [f"X-{number}: {number}" for number in range(random.choice((90, 110, 300, 1100)))]
    framing, body = _framing(random, label)
    lines += framing
    if random.random() < 0.3:
        head = lines[1:]
        random.shuffle(head)
        lines[1:] = head
    end = odd("line ends", "\r\n", ("\n", "\r", "\r\r\n"), 0.02)
    return ", ".join(label), (end.join(lines) + end + end).encode("latin-1", "replace") + body


def _framing(random: Random, label: list[str]) -> tuple[list[str], bytes]:
    """The lines that say how long the body is, and the body."""
    payload = random.choice((b"5", b"7", b"12", b"[1]", b"", b"{", b"3.5", b"4" * 5, b" 6 ", b"x" * 3000))
    size, kind = len(payload), random.random()
    usual = f"Content-Length: {size}"
    if kind < 0.6:
        return [usual], payload
    if kind < 0.7:
        chosen = random.choice(_LENGTHS)
        label.append(f"length {chosen!r}")
        return ["Content-Length: " + chosen.format(n=size, less=max(0, size - 1), more=size + 1)], payload
    if kind < 0.74:
        label.append("two lengths")
        return [usual, random.choice((usual, f"Content-Length: {size + 1}", "Content-Length: 0"))], payload
    if kind < 0.76:
        label.append("no length")
        return [], payload
    lines = ["Transfer-Encoding: chunked"]
    if kind < 0.82:
        chosen = random.choice(_CODINGS)
        label.append(f"coding {chosen!r}")
        lines = [f"Transfer-Encoding: {chosen}"]
    elif kind < 0.86:
        label.append("length and chunks")
        lines.append(usual)
        random.shuffle(lines)
    elif kind < 0.88:
        label.append("chunked twice")
        lines *= 2
    return lines, _chunks(random, payload, label)


def _chunks(random: Random, payload: bytes, label: list[str]) -> bytes:
    parts, at = [], 0
    while at < len(payload):
        piece = payload[at : at + random.choice((1, 2, 4000))]
        at += len(piece)
        size = f"{len(piece):x}"
        if random.random() < 0.08:
            chosen = random.choice(_SIZES)
            label.append(f"chunk size {chosen[:24]!r}")
            size = chosen.format(x=size)
        end = b"\r\n"
        if random.random() < 0.02:
            end = random.choice((b"\n", b"", b"xx", b"\r", b"\r\n\r\n"))
            label.append(f"chunk end {end!r}")
        parts.append(size.encode("latin-1") + b"\r\n" + piece + end)
    last = b"0\r\n\r\n"
    if random.random() < 0.1:
        last = random.choice(
            (b"0\r\nX-T: 1\r\n\r\n", b"0;a=1\r\n\r\n", b"000\r\n\r\n", b"0\n\n", b"0\r\nX-T : 1\r\n\r\n", b"0\r\n", b"",
             b"0\r\n" + b"X-T: 1\r\n" * 5000 + b"\r\n", b"0\r\nContent-Length: 5\r\n\r\n", b"0\r\nX\0: 1\r\n\r\n")
        )  # fmt: skip
        label.append(f"last chunk {last[:24]!r}")
    return b"".join(parts) + last


def _mutated(random: Random, data: bytes) -> tuple[str, bytes]:
    at = random.randrange(len(data))
    kind = random.randrange(4)
    if kind == 0:
        return f", byte {at} changed", data[:at] + bytes((random.randrange(256),)) + data[at + 1 :]
    if kind == 1:
        return f", cut at {at}", data[:at]
    if kind == 2:
        return f", {at} put twice", data[: at + 8] + data[at:]
    return f", garbage at {at}", data[:at] + random.randbytes(random.randrange(1, 20)) + data[at:]
