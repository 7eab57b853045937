"""What the HTTP port answers, as tables: paths, formats, statuses, headers and limits.

`make docs` writes them into docs/reference/http.md. `tests/e2e/test_reference.py` asks a server for each row, so a row
is added here together with its question there. Numbers and formats come from the code that obeys them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_GET = "GET, HEAD"
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        head: Titles of its columns.
        rows: Texts of the cells, as Markdown.
        key_cells: The first so many cells of a row tell it from all others.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    key_cells: int = 1

    @property
    def keys(self) -> list[str]:
        """What tells each row from the others."""
        return [" ".join(row[: self.key_cells]) for row in self.rows]


def tables() -> Mapping[str, Table]:
    """All tables by their names, which the page marks the places of."""
    return {
        "paths": _paths(),
        "formats": _formats(),
        "bodies": _bodies(),
        "statuses": _statuses(),
        "chosen": _chosen(),
        "headers": _headers(),
        "stream-headers": _stream_headers(),
        "limits": _limits(),
    }


def _paths() -> Table:
    from invoker.protocols.web.service.functions import FUNCTIONS
    from invoker.server.endpoints.pages import PATHS

    rows = [
        ("`/NAME`", "POST", "calls the function NAME"),
        ("`/NAME`", _GET, "calls it if it is marked `@function(safe=True)`; the query fills its parameters"),
        ("`/NAME/ws`", "WebSocket", "calls it, with [items and outputs as frames](#websocket); a plain GET is 426"),
        (
            "`/`",
            "POST",
            (
                "calls the only function, or the one that the header `Invoker-Function` names. With "
                "`--http-root graphpipe` it is the first model"
            ),
        ),
        ("`/`", "WebSocket", "a session of action-engine, if `--protocols` lists it; `--socket-path` moves it"),
        ("`/`", _GET, "[the page](#the-page-for-a-browser), for whoever reads HTML"),
        ("`/PACKAGE.SERVICE/METHOD`", "POST", "calls a [typed method](typed.md), by Connect or gRPC-Web"),
        ("`/PACKAGE.SERVICE/METHOD`", "GET", "calls it by Connect, if the function is marked as safe"),
        ("`/invocations`", _GET, "the live numbers of the page"),
        ("`/openapi.json`", _GET, "[the OpenAPI document](#what-is-served); not with `--no-reflection`"),
        (f"`{FUNCTIONS}`", _GET, "[lists the functions](#what-is-served), as JSON; not with `--no-reflection`"),
        (
            "`/graphpipe`, `/graphpipe/NAME`",
            "POST",
            "infers: a GraphPipe buffer in, one out; see [GraphPipe](graphpipe.md)",
        ),
        (
            "`/graphpipe`, `/graphpipe/NAME`",
            _GET,
            "describes the model, as JSON or, where `Accept` prefers it, as a page",
        ),
        ("`/livez`, `/healthz`", _GET, "200 while the process answers at all"),
        ("`/readyz`", _GET, "200 while the process should get traffic, else 503"),
        ("`/control/is_alive`, `/control/is_ready`", _GET, "the same two, under GraphPipe's names"),
        ("`/metrics`", _GET, "the metrics, in the text format of Prometheus"),
    ]
    told = "".join(row[0] for row in rows)
    assert all(path in told for path in PATHS), "a page of the process has no row"
    return Table(("path", "methods", "what it does"), rows, 2)


def _formats() -> Table:
    """Real bytes: what the formats write."""
    from invoker.message import Message
    from invoker.protocols.web.formats import EVENTS, LINES, MIXED, format_of

    text = Message(b'"a"', media_type="application/json")
    rows = []
    for kind in (EVENTS, LINES):
        one, two = format_of(kind, ("out",)), format_of(kind, ("words", "counts"))
        shown = [one.item(0, text), two.item(0, text), one.end(), one.error({"status": 500})]
        rows.append((f"`{kind}`", *(_shown(part) for part in shown)))
    rows.append(
        (
            f"`{MIXED}`",
            "a part with its own `Content-Type` and headers",
            'the same, with `Content-Disposition: inline; name="words"`',
            "the closing delimiter",
            "a last part of `application/problem+json`",
        )
    )
    cut = "nothing: the response breaks off"
    rows += [
        ("none of these, at `/NAME`, of `str`", "the text", "-", "the end of the body", cut),
        ("none of these, at `/NAME`, of `bytes`", "the bytes", "-", "the end of the body", cut),
        (
            "none of these, at `/NAME`, of anything else",
            'a line of `application/x-ndjson`: `"a"⏎`',
            '`{"words":"a"}⏎`',
            "the end of the body",
            '`{"error":{...}}⏎`, and the response breaks off',
        ),
    ]
    return Table(("`Accept`", "an item", "of several outputs", "the end", "an error is the last item"), rows)


def _shown(data: bytes) -> str:
    """Bytes of text as one cell."""
    if not data:
        return "the end of the body"
    text = data.decode().replace('"status":500', "...").replace("\n", "⏎")
    return f"`{text}`"


def _bodies() -> Table:
    rows = (
        ("a value of any media type", "one value for the first parameter"),
        ("a JSON object, or a form, of parameters' names", "a value for each of them"),
        ("`application/x-ndjson` (`application/ndjson`, `application/jsonl`)", "each line of JSON"),
        ("the same, for several inputs", 'a line is an object that names them: `{"words": "a"}`'),
        ("`multipart/form-data`, where a stream is asked for", "each part, for the input of its name"),
        (
            "no announced length, of no type or `text/plain`, where a stream is asked for, or at `/NAME`",
            "each line of text, for inputs of text and numbers; of JSON for others",
        ),
        ("the same or `application/octet-stream`, for an input of bytes", "what comes at once"),
        ("`application/octet-stream`, or no type, longer than a message may be, for an input of bytes", "the same"),
    )
    return Table(("the body", "an item is"), rows)


def _statuses() -> Table:
    rows = (
        ("200", "the function gave its value, or begins to stream"),
        (
            "204",
            (
                "the function has no output; the preflight of a listed origin; a browser asks for events again "
                "(`Last-Event-ID`)"
            ),
        ),
        ("304", "`If-None-Match` has the `ETag` of a description or of the page"),
        (
            "400",
            (
                "the input cannot be decoded or does not fit the parameters; the text names the parameter, what was "
                "met and "
                "what was expected. Also a head that is not well formed"
            ),
        ),
        ("403", "a web page of another origin, or a `Host` that is not ours: [below](#web-pages-origins-and-hosts)"),
        ("404", "there is nothing at this path, or no function of this name"),
        ("405", "another method; `Allow` lists those that are known"),
        (
            "406",
            (
                "the function's value, or the stream that it gives, can be none of what `Accept` lists; or "
                "`Accept-Encoding` leaves out `identity` and every coding that there is"
            ),
        ),
        ("408", "the body came too slowly"),
        ("413", "the body, or an item of it, is too long; the text names the flag"),
        (
            "415",
            (
                "no codec for the `Content-Type`; or a `Content-Encoding` that is not known, with `Accept-Encoding`: "
                "[below](#compression)"
            ),
        ),
        ("426", "a request to `/NAME/ws` that is no handshake"),
        ("429", "a limit of the function, or of all together, is reached; with `Retry-After`"),
        ("431", "the head is too long"),
        (
            "500",
            (
                "the function raised, gave no value or more than one where exactly one can be the response, or gave "
                "something "
                "that cannot be encoded"
            ),
        ),
        ("501", "a `Transfer-Encoding` other than `chunked`"),
        (
            "503",
            (
                "too much runs already, `INVOKER_MEMORY_BYTES` is spent, the functions still load, or the process "
                "drains; "
                "with `Retry-After`"
            ),
        ),
        ("504", "`INVOKER_HTTP_TIMEOUT_S` or the function's own time limit passed"),
        ("505", "a version of HTTP other than 1.0, 1.1 and 2"),
    )
    return Table(("status", "when"), rows)


def _chosen() -> Table:
    """The statuses that a function chooses by `StatusError`."""
    from invoker.errors.http import HTTP_STATUS

    by_status: dict[int, list[str]] = {}
    for status, number in HTTP_STATUS.items():
        by_status.setdefault(number, []).append(f"`{status.name}`")
    return Table(
        ("status", "of `StatusError`"), [(str(number), ", ".join(names)) for number, names in by_status.items()]
    )


def _headers() -> Table:
    from invoker.transports.http.writing import ALWAYS

    nosniff = dict(ALWAYS)["X-Content-Type-Options"]
    rows = (
        ("`Content-Length`", "of a whole response, except with 204 and 304"),
        ("`Content-Type`", "of text with `; charset=utf-8`, unless the function names a charset"),
        ("`X-Content-Type-Options`", f"`{nosniff}`: a browser takes the body for what `Content-Type` says"),
        ("`Connection: close`", "from when the process begins to drain; behind a refusal whose body was not read"),
        ("`Retry-After`", "with 429 and 503"),
        ("`traceparent`, `traceresponse`", "if the request has a valid `traceparent`: [below](#traces)"),
        ("`Vary: Origin`", "if `--allowed-origin` lists anything"),
        ("`Access-Control-Allow-Origin`", "for pages of listed origins"),
        (
            "`Access-Control-Expose-Headers`",
            "for pages of listed origins: `*`, so that they may read all of them",
        ),
    )
    return Table(("header", "value"), rows)


def _stream_headers() -> Table:
    from invoker.protocols.web.formats import EVENTS, LINES, MIXED, format_of

    rows = []
    for kind in (EVENTS, LINES, MIXED):
        own = ", ".join(f"`{name}: {value}`" for name, value in format_of(kind, ("out",)).headers if kind not in value)
        rows.append((f"`{kind}`", own))
    return Table(("stream", "headers"), rows)


def _limits() -> Table:
    return Table(("what", "limit", "beyond it"), list(_limit_rows()))


def _limit_rows() -> Iterator[tuple[str, str, str]]:
    from invoker.protocols.web.service.page.handlers import MOST_WATCHERS
    from invoker.transports.http.exchange import HttpSettings
    from invoker.transports.http.heads import MOST_BYTES, MOST_FIELDS
    from invoker.transports.http.request import HIGH_BYTES
    from invoker.transports.http.streamed import HEAD_S, HEARTBEAT_S

    settings = HttpSettings()
    yield ("a body that is one value", "`INVOKER_MAX_MESSAGE_BYTES`", "413")
    yield (
        "an item of a body that streams in",
        "the same; their number has no limit",
        "413, or an error as the last item",
    )
    yield ("a body of `/graphpipe`", "`INVOKER_GRAPHPIPE_BYTES`", "413")
    yield (
        "the head of a request",
        f"{MOST_BYTES // _KIB} KiB with HTTP/1, 64 KiB with HTTP/2",
        "431, or the connection ends",
    )
    yield ("fields of a head of HTTP/1", f"{MOST_FIELDS}", "431")
    yield (
        "requests of HTTP/1 behind the one that is answered",
        f"{HIGH_BYTES // _KIB} KiB are read ahead",
        "the client waits",
    )
    yield ("a connection without a request", f"{settings.idle_s:g} s, and so long for a head to come", "it ends")
    slowest = f"{settings.body_s:g} s, and a second more for each {settings.body_bytes_per_s:g} bytes"
    yield ("a body that is one value, in time", slowest, "408; one that streams in may take any time")
    yield ("the head of a stream", f"leaves after {HEAD_S:g} s, although there is no item yet", "-")
    yield ("events without an item", f"{HEARTBEAT_S:g} s", "a comment line keeps the connection")
    yield (
        "a client that takes nothing of its response",
        f"{settings.write_s:g} s for each MiB",
        "its connection is cut, and its function cancelled",
    )
    yield ("a message of WebSocket", "`INVOKER_MAX_MESSAGE_BYTES`", "close 1009")
    yield (
        "a WebSocket on which nothing comes",
        "three pings, of which one is sent every 20 s",
        "its connection ends, and its call is cancelled",
    )
    yield ("a WebSocket that takes nothing of what is sent", f"{settings.write_s:g} s", "the same")
    yield ("a peer whose machine is gone", "80 s", "its connection ends, and its calls are cancelled")
    yield ("connections with requests", "half of the file descriptors, and an eighth of that", "calls are 503")
    yield ("watchers of `/invocations` at once, as events", f"{MOST_WATCHERS}", "503")
    yield ("requests at once on a connection of HTTP/2", "100", "refused by HTTP/2")
    yield (
        "frames of HTTP/2 that ask for nothing",
        (
            "1000 at once, 100 a second, and one for each KiB that is sent; RST_STREAM counts as 2, SETTINGS for every "
            "64 bytes"
        ),
        "GOAWAY with ENHANCE_YOUR_CALM",
    )
    yield ("CONTINUATION frames of one head", "16", "the same")
    yield (
        "connections",
        "half of the file descriptors that the process may have",
        "the one that has been without a request for longest ends; those that the loop serves go first",
    )
