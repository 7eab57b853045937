"""`traced`: gives a request of a trace a span of its own, which its function can read and which is sent to the client.

See `invoker.traces`. Each request gets a span of its own, so heads with a trace are not cached. The client's id of its
request is sent back unchanged; each id is different, so heads with an id are not cached either.
"""

from __future__ import annotations

from invoker.core.http import RequestHead
from invoker.traces import REQUEST_ID, SPAN, begun, request_id_of

_TRACE = "traceparent"


def traced(head: RequestHead) -> tuple[RequestHead, tuple[tuple[str, str], ...]]:
    """The head for the handler, and headers of the response; the same head and no headers without a trace or an id.

    Args:
        head: The head of the request, with names in lower case.
    """
    sent = [one for one in head.headers if one[0] in (_TRACE, REQUEST_ID)]
    if not sent:
        return head, ()
    ids = [value for name, value in sent if name == REQUEST_ID]
    request = request_id_of({REQUEST_ID: ids[0]}) if len(ids) == 1 else ""
    told: tuple[tuple[str, str], ...] = (("X-Request-Id", request),) if request else ()
    traces = [value for name, value in sent if name == _TRACE]
    met = begun(", ".join(traces)) if traces else None
    if met is None:
        return head, told
    span, spans = met
    headers = [one for one in head.headers if one[0] != SPAN]
    headers.append((SPAN, span))
    return RequestHead(head.method, head.path, head.query, head.http_version, headers), (*spans, *told)
