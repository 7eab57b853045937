"""The reference pages of metrics and of log fields: `tests.gendocs` writes them, tests compare them with the code."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]

ALWAYS = {
    "time": "When, in UTC (RFC 3339), with milliseconds. In text: the clock on the wall.",
    "level": "`debug`, `info`, `warning` or `error`.",
    "logger": "Who says so: a module of the invoker, a logger of the function's, or `print`. Not in text.",
    "message": "What happened.",
}
FIELDS = {
    "invocation": "Id of the invocation, such as `i7`; it counts from the start of the process.",
    "protocol": "Of an ending or a refusal: `riff`, `http`, `websocket`, `typed`, `evergreen`, `action-engine`, "
    "`graphpipe`, `toolbridge` or `federated`; `nested` where a function called this one by its context.",
    "peer": "Of an ending: the address of the caller, or of a proxy, as `ipv4:192.0.2.1:50000` or `unix:`.",
    "http_status": "Of an ending over HTTP: the number of its response, such as 200 of a stream that failed behind its "
    "head; 499 where the client left before there was one.",
    "close_code": "Of an ending over WebSocket: the code of the close frame; 1006 where the client left without one.",
    "function": "Name of the function.",
    "run": (
        "How the function ran: `task` (async, called once in a task), `loop` (async, with streams), `thread` (sync, in"
        " the thread that read the call, or in one of its own), `pool` (sync, in a thread of the pool, since the event"
        " loop read the call), `caller` (sync, in the thread of the function that called it) or `process` (isolated)."
    ),
    "parent": "Id of the invocation whose function called this one by its context; of nested calls only.",
    "trace": "Id of the caller's trace, where the caller sends the header `traceparent` (W3C Trace Context).",
    "request_id": "What the caller calls its request, by `X-Request-Id` (`x-request-id` in the metadata of gRPC): at "
    "most 128 visible ASCII characters.",
    "status": "How it ended: a status of gRPC by its name. In lines of HTTP requests: the number of the response.",
    "detail": "The text that the caller was told, of an ending or a refusal.",
    "seconds": "How long it took.",
    "frames_in": "Messages that the inputs were given.",
    "frames_out": "Messages that the outputs gave.",
    "bytes_in": "Payload that the inputs were given, in bytes.",
    "bytes_out": "Payload that the outputs gave, in bytes.",
    "queued_frames": "Of an invocation that is paused or blocked: messages that came and wait for its function.",
    "queued_bytes": "Of the same: their payload, in bytes; on the line of a sync function's call, with its frames.",
    "where": "`file:line` of the function that gave what cannot be sent.",
    "hint": "What is likely wrong with the function that raised.",
    "actions": "Of a session that ended: how many actions it had.",
    "request": "Of a GraphPipe request: names, types and shapes of its tensors, never their values.",
    "code": "Of a GraphPipe request: the number of its error; 0 for none.",
    "bytes": "Of a GraphPipe request: the size of the response. Of a round: the size of the checkpoint.",
    "population": "Of a federated round: the name of the population.",
    "task": "Of a federated round: the name of the task.",
    "round": "Of a federated round: its number within its task; a round that fails leaves its number to the next one.",
    "phase_id": "Of a federated round: the id that all of its devices are told; it says nothing about any of them.",
    "outcome": "Of a federated round: `committed` or `failed`.",
    "accepted": "Of a federated round: how many devices were taken into it.",
    "reports": "Of a federated round: how many reports its function was given.",
    "worker": "The number of the worker that writes the line, with several.",
    "pid": "The process of a worker that is ready.",
    "serves": "Of the ready message: the protocols.",
    "note": "Of the ready message: that a parameter has no type, so that text arrives as a str.",
    "page": "Of the ready message: where a browser can try the functions, where there is a page.",
    "try": "Of the ready message: a call to copy, where one is known.",
    "stacks": "Of a process that hangs: where its async bodies and its threads stand. In text: indented lines below.",
    "traceback": "Of an exception that a function or the invoker raised. In text: on the lines that follow, indented.",
}

AUDIT = {
    "time": "When the call ended, in UTC (RFC 3339), with milliseconds.",
    "session_id": "The session that the caller named.",
    "tool_id": "Id of the tool, or what the caller called it if there is none.",
    "request_id": "As the caller gave it; may be empty.",
    "correlation_id": "As the caller gave it, by metadata or context; made up otherwise.",
    "peer": "The address of the caller, as `ipv4:192.0.2.1:50000`.",
    "identity": "The names of the caller's certificate, with mutual TLS; empty otherwise.",
    "via": "What brought the call: `execute`, `stream`, `batch`, `agent`, `nested` or `callback`.",
    "outcome": "`ok`, `error`, `cancelled`, or `cached`: a repeated `request_id` got the answer of the first call.",
    "error_type": "The type of the error, as the caller was told it; empty for none.",
    "duration_ms": "How long it took.",
    "args_sha256": "Hash of the arguments as they were sent: the same for the same arguments.",
    "args": "Their values by name, if `INVOKER_AUDIT_ARGS` asks for them; `[redacted]` where the name says that the "
    "value is a secret. What stands within a text or a list has no name, and is shown.",
}

ABOUT_AUDIT = """\
With `INVOKER_AUDIT` each call of a tool over the tool bridge has a line of JSON, also one that was refused. A file is
opened anew when it was moved, as logrotate does it; a line that cannot be written is lost, counted as
`invoker_audit_errors_total`, and shown by HealthCheck. Names that hold `password`, `secret`, `token`, `key`,
`credential`, `authorization` or `cookie`, in any case and at any depth, are always redacted."""

ABOUT_METRICS = """\
`GET /metrics` of the HTTP port gives them in the text format of Prometheus. With several workers any of them
answers for all: counters outlive the workers that counted, and gauges are sums over those that live. The metrics
of workers are there with `--workers` only, and a row by status from the first ending with that status on."""

ABOUT_LOGS = """\
Logs go to standard error: as text on a terminal, as one JSON object a line otherwise (`--log-format`). In text the
fields stand behind the message as `name=value`, and control characters are escaped. Why a process does not start is
told in the same way; only a mistake in the words of a command is text until `--log-format json` or
`INVOKER_LOG_FORMAT=json` asks for an object, since people type commands. Each invocation has one ending, also one that
is cut at the end of a drain, or by a second signal. Over HTTP it comes when the response has begun, and no later than a
second behind the end of the function. Every line has these fields:"""

ABOUT_FUNCTIONS = """\
The invoker never logs a payload. What a function logs has its own `extra` besides, and the fields `invocation`,
`function` and `trace` of the invocation in whose code it was logged; `--log-level` holds for it, too. What a
function prints goes to standard output. With text logs, or where a terminal reads it, it passes unchanged;
otherwise each line becomes an object with the logger `print`. `sys.stdout` stays the object that it is, and only
its `write` is replaced: what goes around that, such as the output of another program, passes unchanged. So it is
with `sys.stderr`, whose lines stay text.

Whoever logs or prints does not wait for the reader of standard error and standard output. If it stands still, up to
8 MiB wait for it; what comes then is dropped, and a line says how many lines were, where they would have stood. At
the end of the process it has five seconds, or one if it takes nothing."""


def metrics_page(made: str, table: Table) -> Iterator[str]:
    """Every metric of `invoker.telemetry.metrics`."""
    from invoker.protocols.federated import metrics as roundmetrics
    from invoker.protocols.toolbridge import prometheus as toolmetrics
    from invoker.telemetry.metrics import BY_STATUS, COUNTERS, GAUGES

    yield from ("# Metrics", "", made, "", *_wrapped(ABOUT_METRICS), "")
    rows = [(f'`{name}_total{{status="OK"}}`', "counter", text) for name, text in BY_STATUS.items()]
    rows += [(f"`{name}_total`", "counter", text) for name, text in COUNTERS.items()]
    rows += [(f"`{name}`", "gauge", text) for name, text in GAUGES.items()]
    yield from table(("metric", "type", "what it tells"), rows)
    yield from ("", "Where the tool bridge is served there are besides:", "")
    rows = [
        (f"`{name}`", "histogram" if "_bucket" in name else "counter", text)
        for name, text in toolmetrics.LABELLED.items()
    ]
    rows += [(f"`{name}_total`", "counter", text) for name, text in toolmetrics.COUNTERS.items()]
    rows += [(f"`{name}`", "gauge", text) for name, text in toolmetrics.GAUGES.items()]
    yield from table(("metric", "type", "what it tells"), rows)
    yield from ("", "Where federated rounds are served there are besides:", "")
    rows = [
        (f"`{name}_total{_labels(labels)}`", "counter", text) for name, (labels, text) in roundmetrics.COUNTERS.items()
    ]
    rows += [(f"`{name}{_labels(labels)}`", "gauge", text) for name, (labels, text) in roundmetrics.GAUGES.items()]
    text = "How long rounds took, from the acceptance of their devices on: a histogram."
    rows.append((f'`{roundmetrics.DURATION}_bucket{{population="p",task="t",le="60"}}`', "histogram", text))
    yield from table(("metric", "type", "what it tells"), rows)


def _labels(names: tuple[str, ...]) -> str:
    return "{" + ",".join(names) + "}" if names else ""


def logs_page(made: str, table: Table) -> Iterator[str]:
    """Every field of a log line."""
    yield from ("# Log fields", "", made, "", *_wrapped(ABOUT_LOGS), "")
    yield from table(("field", "what it says"), [(f"`{name}`", text) for name, text in ALWAYS.items()])
    yield from ("", "Some lines have more:", "")
    yield from table(("field", "what it says"), [(f"`{name}`", text) for name, text in FIELDS.items()])
    yield from ("", "## Lines of functions", "", *_wrapped(ABOUT_FUNCTIONS))
    yield from ("", "## The audit log", "", *_wrapped(ABOUT_AUDIT), "")
    yield from table(("field", "what it says"), [(f"`{name}`", text) for name, text in AUDIT.items()])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 115)
