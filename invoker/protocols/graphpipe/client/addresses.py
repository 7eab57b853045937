"""`Address`: the address of a GraphPipe server; `parse` reads URLs with the schemes of G-097.

==================================  ==============================================================
``http://host:port/path``           HTTP; without a path: ``/``
``https://host:port/path``          the same with TLS
``unix+http:///run/m.sock``         HTTP over a Unix socket, path ``/``
``unix+http://%2Frun%2Fm.sock/p``   the same with a path; the path of the socket is percent-encoded
``tcp://host:port``                 a raw socket: each buffer follows its length (D4)
``tcp://host:port/name``            the same, for the model of this name
``unix:///run/m.sock``              a raw Unix socket; the path in ``unix:m.sock`` is relative
``unix://%2Frun%2Fm.sock/name``     the same, for the model of this name; the path is percent-encoded
==================================  ==============================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

_PORTS = {"http": 80, "https": 443}
_SCHEMES = "http, https, unix+http, tcp or unix"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server, with its protocol.

    Attributes:
        host: The name or IP address; empty for a Unix socket.
        port: The port; 0 for a Unix socket.
        socket: The path of a Unix socket; empty for TCP.
        target: The path and query of HTTP requests; empty for raw sockets.
        model: The name of the model, for raw sockets; empty: the first model.
        is_tls: Whether the connection uses TLS.
    """

    host: str = ""
    port: int = 0
    socket: str = ""
    target: str = ""
    is_tls: bool = False
    model: str = ""

    @property
    def is_http(self) -> bool:
        """Whether the protocol is HTTP; otherwise it is a raw socket."""
        return bool(self.target)

    def __str__(self) -> str:
        if self.socket:
            return f"unix:{self.socket}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(url: str) -> Address:
    """Parse a URL.

    Raises:
        ValueError: The URL has none of the forms above.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ValueError(f"{url!r} is not a URL: {error}") from None
    if parts.fragment:
        raise _bad(url, "what follows # is never sent")
    if "@" in parts.netloc:
        raise _bad(url, "names and passwords go into headers={'authorization': ...}")
    match parts.scheme:
        case "http" | "https":
            if not host:
                raise _bad(url, "there is no host")
            port = _PORTS[parts.scheme] if port is None else port
            return Address(host, port, target=_target(url, parts), is_tls=parts.scheme == "https")
        case "unix+http":
            return _unix_http(url, parts)
        case "tcp":
            if not host or port is None or parts.path.count("/") > 1 or parts.query:
                raise _bad(url, "write tcp://host:port, or tcp://host:port/name")
            return Address(host, port, model=_model(parts.path))
        case "unix":
            if "%2f" in parts.netloc.lower() and parts.path.count("/") <= 1 and not parts.query:
                return Address(socket=unquote(parts.netloc), model=_model(parts.path))
            if not parts.path or parts.netloc or parts.query:
                raise _bad(url, "write unix:///path, or unix://%2Fpath/name")
            return Address(socket=unquote(parts.path))
        case other:
            raise _bad(url, f"the scheme is {other!r}, not {_SCHEMES}" if other else f"begin with {_SCHEMES}")


def _unix_http(url: str, parts: SplitResult) -> Address:
    if parts.netloc:
        return Address(socket=unquote(parts.netloc), target=_target(url, parts))
    if not parts.path:
        raise _bad(url, "write unix+http:///path")
    return Address(socket=unquote(parts.path), target=f"/?{parts.query}" if parts.query else "/")


def _model(path: str) -> str:
    return unquote(path.removeprefix("/"))


def _target(url: str, parts: SplitResult) -> str:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not target.isascii() or any(sign <= " " or sign == "\x7f" for sign in target):
        raise _bad(url, "characters beyond ASCII, and spaces, have to be percent-encoded")
    return target


def _bad(url: str, why: str) -> ValueError:
    return ValueError(f"{url!r} is not the address of a GraphPipe server: {why}")
