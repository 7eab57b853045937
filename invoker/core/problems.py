"""Problems: errors in the form of RFC 9457, for clients that ask for ``application/problem+json``.

A client asks for them if it names the media type and ranks neither JSON nor text, the other forms of an error, above
it. A wildcard does not name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from invoker.core.http import RequestHead, Response
from invoker.errors import Status
from invoker.errors.http import status_of
from invoker.mediatypes import ranges

PROBLEM: Final = "application/problem+json"

_OTHERS: Final = ("application/json", "text/plain")
_TITLES: Final[Mapping[int, str]] = {
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Request Entity Too Large",
    414: "Request-URI Too Long",
    415: "Unsupported Media Type",
    416: "Requested Range Not Satisfiable",
    417: "Expectation Failed",
    421: "Misdirected Request",
    422: "Unprocessable Entity",
    423: "Locked",
    424: "Failed Dependency",
    425: "Too Early",
    426: "Upgrade Required",
    428: "Precondition Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    451: "Unavailable For Legal Reasons",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
    506: "Variant Also Negotiates",
    507: "Insufficient Storage",
    508: "Loop Detected",
    510: "Not Extended",
    511: "Network Authentication Required",
    499: "Client Closed Request",
}


def wants_problems(accept: str) -> bool:
    """Whether an Accept list asks for problems."""
    if PROBLEM not in accept.lower():
        return False
    weights = {one.media_type.essence: one.q for one in reversed(ranges(accept))}
    own = weights.get(PROBLEM, 0.0)
    return own > 0 and all(weights.get(one, 0.0) <= own for one in _OTHERS)


def problem_of(status: int, detail: str, code: str = "", **more: str) -> dict[str, str | int]:
    """The members of a problem.

    Args:
        status: The status of the response.
        detail: The text of the error.
        code: The name of gRPC's status; empty: the one for the HTTP status.
        more: Further members.

    Source: RFC 9457, 3.
    """
    title = _TITLES.get(status, "Error")
    code = code or status_of(status, Status.INTERNAL).name
    return {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code, **more}


def problem_response(problem: Mapping[str, str | int], headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A response that carries a problem as its body."""
    status = problem["status"]
    assert isinstance(status, int)
    return Response(status, (("Content-Type", PROBLEM), *headers), msgspec.json.encode(problem))


def only_read(head: RequestHead) -> Response:
    """The refusal of a method that would call a function, at a path that only can be read (H-017)."""
    name = head.path.removeprefix("/")
    text = (
        f"Invoker: Method Not Allowed: {head.method!a}; GET reads {head.path!a}, which calls no function; "
        f"a function {name!a} is called at '/' with the header Invoker-Function\n"
    )
    return Response(405, (("Content-Type", "text/plain"), ("Allow", "GET, HEAD")), text.encode())


def as_problem(response: Response, accept: str) -> Response:
    """Turn a refusal in plain text into a problem, if the client asks for problems.

    Other responses stay as they are.
    """
    if response.status < 400 or not wants_problems(accept):
        return response
    others = tuple(one for one in response.headers if one[0].lower() != "content-type")
    if len(others) == len(response.headers) or ("Content-Type", "text/plain") not in response.headers:
        return response
    made = problem_response(problem_of(response.status, response.body.decode("utf-8", "replace").strip()), others)
    return msgspec.structs.replace(made, close=response.close)
