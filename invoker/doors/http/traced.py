"""`traced`: a request that belongs to a trace gets a span of its own, which its function sees and its client is told.

See `invoker.traces`. The same head means another span each time, so whoever keeps what heads mean keeps none of these.
"""

from __future__ import annotations

from invoker.core.http import RequestHead
from invoker.traces import SPAN, begun

__all__ = ["traced"]


def traced(head: RequestHead) -> tuple[RequestHead, tuple[tuple[str, str], ...]]:
    """The head as the front sees it, and the headers of the response; the same head and none without a valid trace.

    Args:
        head: Of the request, with names in lower case.
    """
    sent = [value for name, value in head.headers if name == "traceparent"]
    if not sent:
        return head, ()
    met = begun(", ".join(sent))
    if met is None:
        return head, ()
    span, told = met
    headers = [one for one in head.headers if one[0] != SPAN]
    headers.append((SPAN, span))
    return RequestHead(head.method, head.path, head.query, head.http_version, headers), told
