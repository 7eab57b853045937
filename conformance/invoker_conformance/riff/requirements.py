"""The requirements of the riff invoker that a report cites: id, level, a sentence, and which no outsider can judge.

The full wording, with sources and reasons, is in ``docs/reference/requirements.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import Requirement, read_table

__all__ = ["REQUIREMENTS"]


_PROCESS = "the process and its environment: start-up, ports, exit codes"
_HOOKS = "hooks and signals of the process"
_INSIDE = "needs a view inside the process"
_AUTHOR = "how an author writes a function in one language"
_OPTION = "needs the target started with another configuration"

_UNJUDGED: dict[str, str] = {
    **{f"R-{n:03}": _PROCESS for n in (*range(1, 7), 8, 9, 10, 14, 16, 140)},
    **{f"R-{n:03}": _HOOKS for n in range(17, 29)},
    "R-011": _INSIDE,
    "R-035": _AUTHOR,
    "R-040": _AUTHOR,
    "R-043": _AUTHOR,
    "R-044": _AUTHOR,
    "R-056": _AUTHOR,
    "R-069": _OPTION,
    "R-071": _AUTHOR,
    "R-132": _OPTION,
    "R-158": "not offered: functions are loaded at start",
}

_TABLE = """
R-001 MUST   On start a gRPC server listens on the port named by GRPC_PORT.
R-002 MUST   Unset GRPC_PORT means 8081.
R-003 PEER   Empty or blank GRPC_PORT is treated as unset.
R-004 MUST*  Non-numeric or out-of-range GRPC_PORT stops the process at once.
R-005 MAY*   GRPC_PORT=0 takes an ephemeral port and prints it in the ready line.
R-006 MUST*  A port already in use is fatal.
R-007 MUST   The served method is exactly /streaming.Riff/Invoke, bidirectional.
R-008 MUST*  Entrypoint module:attr is imported; missing module, missing attribute, not callable stop start-up.
R-009 MAY    Load the function eagerly at start. We do, once per process.
R-010 MAY    Reload per invocation (--reload).
R-011 SHOULD State gathered for an invocation is released when it ends, whatever the outcome.
R-012 MUST   Two invocations share nothing inside the invoker.
R-013 SHOULD A failed call never harms the process or other calls.
R-014 PEER   The port opens only after the init hook succeeded, within the patience of callers.
R-015 MAY*   Standard gRPC health and reflection services; health is NOT_SERVING while draining.
R-016 PEER   The process stays in the foreground, logs one ready line, exits 0 on a clean stop.
R-017 PEER   The init hook runs once per process and ends before the first invocation.
R-018 PEER   Optional destroy hook runs exactly once, after all invocations have ended and before exit.
R-019 PEER   Hooks may be sync or async; a sync hook must not block the event loop past its timeout.
R-020 PEER   Each hook has 10 s; on expiry the invoker aborts and names the timeout.
R-021 PEER   A raising hook aborts with the cause in the log.
R-022 PEER   A hook attribute that is not callable is refused, naming the type found.
R-023 PEER   If init fails, destroy still runs, then exit non-zero with the init error.
R-024 PEER   SIGTERM and SIGINT start a graceful stop: running calls finish, then destroy, then exit 0.
R-025 MUST*  The drain is bounded (30 s); then remaining calls are cancelled.
R-026 MAY*   A second signal skips the drain.
R-027 PEER   A failing graceful stop still runs destroy and exits non-zero.
R-028 PEER   An infinite function does not defeat shutdown.
R-029 MUST   One call causes exactly one call of a streaming function, also with zero InputFrames.
R-030 MAY    Request/reply functions are exposed as one input and one output.
R-031 MUST   Request/reply = map: output k is the function applied to input k, same order, same count.
R-032 MUST   Zero inputs to a request/reply function give zero outputs, OK, function not called.
R-033 MUST   An exception in a request/reply function ends the output; later inputs are not processed.
R-034 PEER   Async request/reply functions are awaited; outputs keep input order.
R-035 SHOULD* Mapping is sequential by default; opt-in concurrency keeps the order.
R-036 MUST*  N parameters = N inputs; a blocking function in one call does not delay another call.
R-037 PEER   Zero-parameter generator = source: no inputs, outputs flow right after StartFrame.
R-038 PEER   Streams reachable by index and by name; the k-th name is the k-th stream.
R-039 MUST*  Several outputs by tuple of iterators or tagged values; an unknown tag fails.
R-040 PEER   The function may ask for the payload, the whole message, or the headers only.
R-041 PEER   A value yielded as a message carries headers; any other value is a bare payload.
R-042 MUST*  None is a value: JSON null, empty text, empty bytes.
R-043 PEER   interaction_model = "stream" with a plain function is accepted as streaming.
R-044 MAY*   A function may raise a typed invoker error to select status and message.
R-045 MUST   First signal must be start. A first data fails the call, function not called.
R-046 MUST   A later start fails the call. Detail lists the rejected types and names.
R-047 MUST*  A signal with neither case set fails the call (wherever it is).
R-048 MUST*  Half-close without any signal fails the call.
R-049 MUST   StartFrame alone followed by half-close is legal.
R-050 MUST   StartFrame alone starts the function; a source or greeting may emit at once.
R-051 MUST   No OutputFrame before StartFrame has been processed.
R-052 MUST   len(expectedContentTypes) = number of outputs; with known arity a mismatch fails.
R-053 MUST   If outputNames is non-empty its length equals that of expectedContentTypes.
R-054 PEER   Empty inputNames / outputNames mean "unnamed": arity comes from the function.
R-055 MUST*  Non-empty inputNames whose length differs from the function's input arity fails.
R-056 MUST*  N for argIndex checks = function arity, else len(inputNames), else 1.
R-057 MAY    Duplicate, empty or odd names are accepted; by-name lookup gives the first.
R-058 PEER   Zero outputs is legal for a sink: OK when the function returns.
R-059 MAY    Names are exposed to the function through the context.
R-060 MUST   Payload decoded per contentType; type case-insensitive, parameters parsed.
R-061 MUST   Empty contentType means application/octet-stream.
R-062 MUST   Value goes to input argIndex.
R-063 MUST   Frames with equal argIndex reach the function in arrival order.
R-064 MUST*  argIndex >= N or negative fails the call (also 2^31-1, -2^31).
R-065 MUST   No codec for the type: fail. Detail begins with punctuation, names type and input index.
R-066 PEER   Syntactically invalid contentType fails the same way.
R-067 MUST*  Wildcard contentType (*/*, text/*) on input is refused.
R-068 MUST   Known type, undecodable payload: fail with Unknown.
R-069 PEER   Switch bad_input=invalid-argument makes Bad Input Signal INVALID_ARGUMENT.
R-070 SHOULD Decoded values are idiomatic: JSON objects, arrays, strings, numbers, booleans, null.
R-071 MAY    Header hints may steer decoding through a custom codec.
R-072 MAY    Message form exposes contentType and all headers.
R-073 PEER   Header lookup is case-insensitive, original spelling preserved.
R-074 MUST*  Two headers that differ only in case are both kept; lookup gives the first in sorted order.
R-075 MUST   Decoding error of a frame: earlier values stay delivered in order; error reaches output at once.
R-076 MUST*  Errors for frames whose input the function no longer reads (it returned) are ignored.
R-077 MUST   text/plain in: parameter expecting str gets text; charset default UTF-8, BOM stripped, strict.
R-078 MUST   text/plain out: text as it is, numbers as text, bool as true/false, None as empty text.
R-079 MUST   charset parameter honoured on input for text and JSON.
R-080 SHOULD Bytes from text/plain: raw; encoding=base64/hex decodes; a charset name transcodes.
R-081 MUST*  charset and a contradictory encoding charset: error.
R-082 MUST*  Unknown charset on a known type is a decode failure, not an unsupported type.
R-083 PEER   UTF-16 JSON without BOM is little-endian for utf-16.
R-084 SHOULD Structured parameters are built from JSON objects; a misfit is Bad Input Signal.
R-085 MUST*  JSON is strict: NaN, Infinity, trailing data, empty payload are errors; NaN out too.
R-086 MUST*  JSON too deep, circular result, huge integer literal are ordinary codec errors.
R-087 MUST*  JSON output is UTF-8; lone surrogates are escaped or refused, never crash.
R-088 MUST   application/octet-stream: bytes pass unchanged both ways.
R-089 MUST*  octet-stream asked, value is text: its UTF-8 bytes; other types: next acceptable type.
R-090 SHOULD A function can register codecs for further media types, both ways.
R-091 PEER   Form decodes to an object and encodes from one; repeated keys give lists.
R-092 PEER   application/cloudevents+json behaves as JSON and keeps its name.
R-093 MUST*  text/* other than plain has no built-in codec.
R-094 SHOULD text/plain to an int, float, bool annotated parameter is converted.
R-095 MUST   Entry j is an ordered comma list; without q-values earlier entries win.
R-096 MUST*  q-values honoured: q descending, then position; q=0 excludes; invalid q counts as 1.
R-097 MUST*  Ranges match codecs in the order json, text/plain, octet-stream, form, cloudevents, custom.
R-098 MUST   contentType of a frame is concrete and within the list: never a wildcard, never with q.
R-099 MUST*  Best-ranked type whose codec can encode the value; none can: serialisation failure.
R-100 MUST   Entry with no matching codec fails when StartFrame arrives, before the function is called.
R-101 MUST*  Blank entry = */*; empty and malformed elements are skipped; nothing left: Not Acceptable.
R-102 MUST*  charset of a range is honoured and echoed; other unknown parameters are ignored.
R-103 MUST*  Text not encodable in the chosen charset: serialisation failure (no ? replacement).
R-104 MUST   Serialisation failure ends the call with Unknown.
R-105 MUST   resultIndex = j.
R-106 MUST   Values emitted on output j are sent in emission order.
R-107 MAY    Message headers copied; a Content-Type header never changes contentType.
R-108 MUST*  Header names and values are wire-safe: surrogates or empty name fail, unicode is allowed.
R-109 MUST   Normal end of the request stream completes every input; a cancel never looks like one.
R-110 MUST   Error end of the request stream raises an error in every input.
R-111 MUST   Completion of one output of several is not forwarded; only the last one ends the call with OK.
R-112 MUST   An error on any output ends the call at once; the other outputs are closed.
R-113 MUST*  Values emitted before the error on the same output are delivered before the status.
R-114 MUST*  Function may end before input does: call ends OK at once, rest of the input is discarded.
R-115 MUST   Client cancel stops the function: clean-up runs, blocked reads wake with an error.
R-116 MUST*  A function deaf to cancellation never blocks other calls; its later output is dropped.
R-117 MUST*  Error text: type and message of the exception; no traceback, no paths, no grpc default.
R-118 MUST*  Detail truncated to 4096 percent-encoded bytes, on a character boundary.
R-119 PEER   Call-time failure (argument binding, non-generator body) uses UIE, production-time failure UE.
R-120 MUST*  Undecodable protobuf bytes or invalid UTF-8 in a string field fail only that call.
R-121 MUST*  A frame above the size limit: RESOURCE_EXHAUSTED; the function sees an error, not an end.
R-122 MUST*  An output above the peer's receive limit ends that invocation cleanly.
R-123 MUST*  Exit-like exceptions of the function fail the call, never end the process.
R-124 MUST*  Deadline passes: like cancel.
R-125 MUST   Calls run concurrently and isolated.
R-126 MUST   Input is received independently of output production.
R-127 MUST*  Back-pressure out: the function is suspended while the client does not read.
R-128 MUST*  Back-pressure in: above the high-water mark reading of the call stops.
R-129 MUST*  No head-of-line deadlock while the function waits on an empty input.
R-130 MUST*  Hard cap of unread input reached: RESOURCE_EXHAUSTED.
R-131 MUST*  Outputs are merged fairly: an infinite fast output does not starve a slow one.
R-132 MAY*   max_invocations: excess calls fail at once.
R-133 SHOULD* Response headers are sent as soon as StartFrame is accepted.
R-134 PEER   After half-close of a window the function must end.
R-135 PEER   No error for a client that merely half-closes early.
R-136 PEER   resultIndex never exceeds the number of outputs - 1.
R-137 PEER   contentType of an output frame is never empty.
R-138 PEER   One frame then OK for the HTTP adapter; zero or two become HTTP 500.
R-139 PEER   Output header X-Http-Status lets the function choose the HTTP status.
R-140 MUST   HTTP listens on PORT, default 8080.
R-141 MUST   Only POST / invokes. Query string allowed.
R-142 MUST*  Other method on /: 405 with Allow: POST; other path: 404.
R-143 MUST   Missing Content-Type = application/octet-stream; missing Accept = */*.
R-144 SHOULD HTTP: no decoder: 415.
R-145 MUST*  HTTP: decode failure: 400.
R-146 SHOULD HTTP: no acceptable type: 406, before the function runs.
R-147 MUST   HTTP: function or serialisation failure: 5xx.
R-148 MUST   HTTP success: 200, type and payload; X-Http-Status overrides, invalid: 500.
R-149 MUST   HTTP: 1x1 arity and exactly one output value, else 5xx; a surplus function is cancelled.
R-150 MUST   HTTP StartFrame: types = [Accept], names in and out; one input, then completion.
R-151 MAY    Request headers passed except Content-Type and Accept; X-Http-* cannot be forged.
R-152 MUST   Output headers never clash with Content-Type, no hop-by-hop, no CR/LF.
R-153 PEER   Error bodies: JSON if best-ranked in Accept, else text with a final newline.
R-154 MUST*  Body over the limit 413; disconnect cancels; deadline 504; draining 503.
R-155 MUST*  HTTP/1.1 with keep-alive and chunked bodies; h2c MAY.
R-156 MAY*   GET /healthz gives 200 without touching the function.
R-157 MAY    State kept by the function on purpose survives between calls of one process.
R-158 MAY    Loading may wait for StartFrame.
R-159 MUST   The invoker never slices, windows or re-tries input.
R-160 MAY    Unknown fields from newer peers are ignored.
R-161 MAY    Missing JSON fields of a structured parameter fail, extra ones are ignored.
R-162 MUST   HTTP: the function starts with its input complete, so an eager output is no error.
R-163 SHOULD HTTP: the parameter annotation steers decoding as on gRPC.
R-164 MUST*  Parameters with defaults are inputs that may be left out; what a caller gives is used or refused.
R-165 MUST*  inputNames may name options, in any order; another name there fails the call.
R-166 MUST*  Announced options are awaited; without names an option's frame counts only before the first required one.
R-167 MUST*  An option is a single value for the whole call; if all have defaults, the first one is mapped.
R-168 MUST*  Surplus frames of a single-valued input fail the call with the count; an input without frames is empty.
R-169 MUST*  HTTP: query parameters, form fields and members of an object fill the parameters of their names.
R-170 MUST*  A refusal of a StartFrame is told with the first data frame or half-close, or after a second.
"""


REQUIREMENTS: dict[str, Requirement] = read_table(_TABLE, _UNJUDGED)
"""Every requirement of the catalogue by its id, in its order."""
