"""Decides which web pages may call the HTTP transport, and under which host names it answers.

Theory. A browser lets every page send requests to any address, also to one that only this machine can reach. So any web
page could run functions here. But browsers name the page from which a request comes: newer ones by `Sec-Fetch-Site`,
and all of them by `Origin`, except on a plain GET. The rules, of which the first that fits decides::

    Host        is not a name of a transport that is bound to loopback          403
    Origin      is listed                                                  passes, with the headers of CORS
    Origin      of a WebSocket's handshake is that of Host                 passes, whatever the scheme: proxies end TLS
    Origin      of a WebSocket's handshake is another                      403
    Fetch-Site  is same-origin or none (the user's own doing)              passes
    Fetch-Site  is another, of a GET navigation of a whole tab             passes: a GET only runs what is safe
    Fetch-Site  is another                                                 403
    Origin      is that of Host, whatever the scheme                       passes
    Origin      is another                                                 403
    neither     as of curl, and of every program that is no browser        passes

The rule of `Host` is needed because the owner of a name can let it lead to 127.0.0.1 after a page was loaded from it
(DNS rebinding); that page would then be of the same origin as this transport. A transport that is not bound to loopback
cannot know its own names. Every browser sends the Origin of a handshake (RFC 6455, 10.2), so only Origin decides there;
the Fetch-Site of a handshake differs between browsers, since its scheme is not the scheme of the page. Sources: Fetch
(CORS, `Origin`), Fetch Metadata.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from invoker.core.http import RequestHead, Response

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})

_ANY: Final = "*"
_WANTED: Final = frozenset(
    {
        "host", "origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "access-control-request-method",
        "access-control-request-headers",
    }
)  # fmt: skip
_AUTHORITY: Final = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[^\s:/@\[\]?#,]+)(?::(?P<port>[0-9]*))?")
_ORIGIN: Final = re.compile(rf"(?P<scheme>[a-z][a-z0-9+.-]*)://{_AUTHORITY.pattern}")
_NAMES: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z, \t-]+")
_PORTS: Final = {"http": "80", "https": "443"}
_VARY: Final = (("Vary", "Origin"),)
_CREDENTIALS: Final = (("Access-Control-Allow-Credentials", "true"),)
_EXPOSED: Final = (
    "Allow, Accept-Encoding, Content-Encoding, ETag, Location, Retry-After, traceparent, traceresponse, "
    "X-GraphPipe-Error, ce-specversion, ce-id, ce-source, ce-type, ce-subject, ce-time, ce-dataschema"
)
"""A star means any header only where no credentials are sent; otherwise it is the literal name of a header (Fetch,
3.3.3)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about one request.

    Attributes:
        response: Ends the request here; None lets it pass.
        headers: The headers to be added to the response.
    """

    response: Response | None = None
    headers: tuple[tuple[str, str], ...] = ()


class Origins:
    """Decides from the head of a request whether the request is allowed.

    Args:
        origins: The origins of pages that may call, such as ``https://example.org``; ``*`` means any.
        hosts: Names under which the transport answers although it is bound to loopback, with or without a port; ``*``
            means any.
        has_credentials: Whether pages of listed origins may send credentials such as cookies, and read the answer;
            pages of origins that are allowed only by ``*`` may not.

    Attributes:
        names: The allowed values of `Host`; None: anything. Set by the code that binds the transport.
    """

    def __init__(
        self, origins: Collection[str] = (), hosts: Collection[str] = (), *, has_credentials: bool = False
    ) -> None:
        self.names: frozenset[str] | None = None
        self._origins = frozenset(one.lower() for one in origins)
        self._hosts = frozenset(one.lower() for one in hosts)
        self._has_credentials = has_credentials
        self._passed = Verdict(headers=_VARY if self._origins else ())
        self._why = "it listens on loopback only, so "
        self._lists = ("--allowed-host", "--allowed-origin")

    def bind(self, host: str, *, is_loopback: bool) -> None:
        """Set the address to which the transport is bound.

        Args:
            host: The host in the configuration.
            is_loopback: Whether only this machine can reach it.
        """
        is_checked = is_loopback and _ANY not in self._hosts
        bound = f"[{host}]" if ":" in host and not host.startswith("[") else host
        self.names = LOOPBACK_NAMES | self._hosts | {bound.lower()} if is_checked else None

    def mount(self) -> None:
        """Note that another server has bound the sockets.

        So the allowed hosts come only from the list of hosts (H-098).
        """
        is_checked = self._hosts and _ANY not in self._hosts
        self.names = LOOPBACK_NAMES | self._hosts if is_checked else None
        self._why, self._lists = "", ("allowed_hosts", "allowed_origins")

    def judge(self, head: RequestHead, *, host: str = "", is_local: bool = False, is_socket: bool = False) -> Verdict:
        """Let a request or the handshake of a WebSocket pass, answer it, or refuse it.

        Args:
            head: The head of the request, with names in lower case.
            host: The host of a target that is a whole URI, which counts instead of `Host`; otherwise empty.
            is_local: Whether it came by a Unix socket; any host is allowed there, since no browser connects to one.
            is_socket: Whether it is a handshake.
        """
        fields: dict[str, str] = {}
        for name, value in head.headers:
            if name in _WANTED:
                fields[name] = f"{fields[name]}, {value}" if name in fields else value
        fields = {name: value.strip().lower() for name, value in fields.items()}
        host = host or fields.get("host", "")
        if self.names is not None and host and not is_local and not self._is_own(host):
            return self._refused(
                f"the host {host!a} is not a name of this invoker; {self._why}Host must be localhost, "
                f"127.0.0.1, [::1] or a name that {self._lists[0]} lists"
            )
        origin = fields.get("origin", "")
        method = "" if is_socket else head.method
        if origin and (origin in self._origins or _ANY in self._origins):
            return _allowed(method, fields, origin, has_credentials=self._has_credentials and origin in self._origins)
        if _is_foreign(method, fields, host):
            page = f"a web page of {origin!a}" if origin else "a web page of another origin"
            return self._refused(f"{page} may not call this invoker; {self._lists[1]} lists those that may")
        return self._passed

    def _is_own(self, host: str) -> bool:
        assert self.names is not None
        match = _AUTHORITY.fullmatch(host)
        return match is not None and (match["host"] in self.names or host in self.names)

    def _refused(self, why: str) -> Verdict:
        headers = (("Content-Type", "text/plain"), ("Cache-Control", "no-store"))
        return Verdict(Response(403, headers, f"Invoker: Forbidden: {why}\n".encode()), self._passed.headers)


def _is_foreign(method: str, fields: Mapping[str, str], host: str) -> bool:
    """Whether the request comes from a page that may not call; ``method`` is empty for a handshake."""
    if not method and "origin" in fields:
        return not _is_same(fields["origin"], host)
    if (site := fields.get("sec-fetch-site")) is not None:
        is_navigation = (fields.get("sec-fetch-mode"), fields.get("sec-fetch-dest")) == ("navigate", "document")
        return site not in ("same-origin", "none") and not (is_navigation and method == "GET")
    return "origin" in fields and not _is_same(fields["origin"], host)


def _is_same(origin: str, host: str) -> bool:
    """Whether an origin has this host and port; a missing port means the default of the origin's scheme."""
    one, other = _ORIGIN.fullmatch(origin), _AUTHORITY.fullmatch(host)
    if one is None or other is None or one["host"] != other["host"]:
        return False
    usual = _PORTS.get(one["scheme"], "")
    return (one["port"] or usual) == (other["port"] or usual)


def _allowed(method: str, fields: Mapping[str, str], origin: str, *, has_credentials: bool) -> Verdict:
    """The CORS headers for a listed origin; a preflight is answered, and runs no function."""
    shared = (("Access-Control-Allow-Origin", origin), *(_CREDENTIALS if has_credentials else ()), *_VARY)
    if method != "OPTIONS" or "access-control-request-method" not in fields:
        exposed = _EXPOSED if has_credentials else "*"
        return Verdict(headers=(*shared, ("Access-Control-Expose-Headers", exposed)))
    headers = [("Access-Control-Allow-Methods", "GET, HEAD, POST"), ("Access-Control-Max-Age", "600")]
    wanted = fields.get("access-control-request-headers", "")
    if _NAMES.fullmatch(wanted):
        headers.append(("Access-Control-Allow-Headers", wanted))
    return Verdict(Response(204, tuple(headers), b""), shared)
