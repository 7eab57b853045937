"""A server that sends what a test has written down: bytes over HTTP or raw, and how the connection ends.

It knows nothing of GraphPipe, and shares no code with our own server.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from invoker.tensors import InferRequest, Tensor, read_request, write_infer_response

DATA = Path(__file__).resolve().parents[3] / "data" / "graphpipe"
LOOPBACK = "127.0.0.1"


def sample(name: str) -> bytes:
    """Bytes of others."""
    return bytes.fromhex((DATA / f"{name}.hex").read_text())


@dataclass(frozen=True)
class Answer:
    """What is sent for a request, and what becomes of the connection."""

    raw: bytes = b""
    ending: Literal["kept", "closed", "reset", "silent"] = "kept"


@dataclass(frozen=True)
class Seen:
    """A request; ``head`` is empty for raw ones."""

    body: bytes
    head: str = ""

    def header(self, name: str) -> str | None:
        """One header of it."""
        lines = (line.partition(":") for line in self.head.split("\r\n")[1:])
        return next((value.strip() for key, _, value in lines if key.lower() == name), None)


Script = Answer | Callable[[Seen], Answer]


def page(body: bytes, status: str = "200 OK", *headers: str, ending: str = "kept") -> Answer:
    """An answer by HTTP/1.1 with its length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return Answer("\r\n".join([*lines, "", ""]).encode() + body, ending)  # type: ignore[arg-type]


def frame(body: bytes) -> Answer:
    """An answer of a raw socket."""
    return Answer(struct.pack("<I", len(body)) + body)


def echo(seen: Seen) -> bytes:
    """The tensors of a request as its outputs."""
    request = read_request(seen.body)
    assert isinstance(request, InferRequest)
    return outputs(*request.tensors)


def outputs(*tensors: Tensor) -> bytes:
    """A response."""
    return bytes(write_infer_response(tensors))


@dataclass
class Peer:
    """A running server and what it has seen.

    Attributes:
        address: ``host:port``, or the path of its socket.
        seen: Requests of all connections, in order.
        connections: How many there were.
        gone: Set when a connection is over, and closed at this end.
        asked: Set when a request has come.
    """

    script: tuple[Script, ...]
    is_raw: bool
    tls: ssl.SSLContext | None = None
    address: str = ""
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    gone: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    _open: set[socket.socket] = field(default_factory=set)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def http(self) -> str:
        """Its URL by HTTP."""
        return f"http{'s' if self.tls else ''}://{self.address}"

    def accept(self, listener: socket.socket) -> None:
        """Take connections until the listener is shut."""
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(sock,), name="scripted connection")
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Cut all connections and wait for their threads."""
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _serve(self, sock: socket.socket) -> None:
        try:
            self._converse(sock)
        finally:
            self.gone.set()  # our end is closed by now, so that a client which looks sees it

    def _converse(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock, self._secured(sock) as line:
            self._open.add(line)
            try:
                reading = line.makefile("rb")
                with reading:
                    while (seen := self._read(reading)) is not None and self._answer(line, seen):
                        pass
            finally:
                self._open.discard(line)

    def _secured(self, sock: socket.socket) -> socket.socket:
        return self.tls.wrap_socket(sock, server_side=True) if self.tls else sock

    def _answer(self, line: socket.socket, seen: Seen) -> bool:
        number = len(self.seen)
        self.seen.append(seen)
        self.asked.set()
        script = self.script[min(number, len(self.script) - 1)]
        answer = script(seen) if callable(script) else script
        line.sendall(answer.raw)
        if answer.ending == "silent":
            line.recv(1)  # until the client goes
        if answer.ending == "reset":
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return answer.ending == "kept"

    def _read(self, reading: object) -> Seen | None:
        read = reading.read  # type: ignore[attr-defined]
        if self.is_raw:
            prefix = read(4)
            return Seen(read(struct.unpack("<I", prefix)[0])) if len(prefix) == 4 else None
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            part = reading.readline()  # type: ignore[attr-defined]
            if not part:
                return None
            head += part
        seen = Seen(b"", head.decode().removesuffix("\r\n\r\n"))
        return Seen(read(int(seen.header("content-length") or 0)), seen.head)


@contextlib.contextmanager
def serving(
    *script: Script, is_raw: bool = False, path: Path | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[Peer]:
    """Serve a script: an answer a request, the last one for all that follow.

    A TCP port of the loopback interface, or a Unix socket at ``path``.
    """
    listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
    listener.bind(str(path) if path else (LOOPBACK, 0))
    listener.listen(16)
    where = str(path) if path else f"{LOOPBACK}:{listener.getsockname()[1]}"
    peer = Peer(script, is_raw, tls, where)
    accepting = threading.Thread(target=peer.accept, args=(listener,), name="scripted server")
    accepting.start()
    try:
        yield peer
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join(10)
        listener.close()
        peer.stop()
        assert not accepting.is_alive()


@contextlib.contextmanager
def refusing(raw: bytes) -> Iterator[str]:
    """Serve one connection: say something as soon as a request begins, and close without reading on."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen()

        def refuse() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(1000)
                sock.sendall(raw)  # what was not read makes the end of it a reset

        thread = threading.Thread(target=refuse, name="refusing server")
        thread.start()
        try:
            yield f"{LOOPBACK}:{listener.getsockname()[1]}"
        finally:
            thread.join(15)
            assert not thread.is_alive()


def nobody() -> str:
    """An address at which nobody listens."""
    with socket.socket() as sock:
        sock.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{sock.getsockname()[1]}"
