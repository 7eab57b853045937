"""The requirements of the GraphPipe front that a report cites: id, level, a sentence, and which no outsider can judge.

The full wording, with sources and reasons, is in ``docs/reference/graphpipe.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import read_table

__all__ = ["REQUIREMENTS"]

_INSIDE = "needs a view inside the process"
_CLIENT = "what a client does, or has to bear"
_END = "needs the target's start or end to be watched"
_LOG = "what the target writes into its log"

_UNJUDGED = {
    **{f"G-{n:03}": _CLIENT for n in (20, 39, 50, 85, 86, 89, 90, 93, 94, 95, 96, 97, 98, 111, 112)},
    "G-014": "takes half a minute of waiting for a body that does not come",
    "G-022": _INSIDE,
    "G-102": _INSIDE,
    "G-103": _INSIDE,
    "G-104": _END,
    "G-105": _LOG,
    "G-106": _LOG,
    "G-107": "what the routes of other fronts answer is theirs",
}

_TABLE = """
G-001 MUST   A POST takes a body that is one Request buffer, whatever the Content-Type.
G-002 MUST   Its answer is application/octet-stream with an exact Content-Length and one buffer.
G-003 MUST*  Chunked bodies and those with Content-Length both work; neither is an empty body.
G-004 MUST*  A body above the limit is refused as soon as that is known, and the connection closed.
G-005 SHOULD* Expect: 100-continue is answered after the check of the size.
G-006 MUST*  A Content-Encoding other than identity is refused.
G-007 MUST   GET gives the metadata as JSON with Go's keys, and TypeName.
G-008 MUST   HEAD is GET without body; other methods are not allowed.
G-009 MUST*  POST is served at / and at the configured route; other paths are 404.
G-010 SHOULD /control/is_ready and /control/is_alive answer ok.
G-011 MUST*  /control/shutdown is not offered.
G-012 MUST*  A connection serves several requests, and a failing one does not spoil the next.
G-013 MUST   A client that leaves during an inference cancels it.
G-014 MUST*  A body that hardly comes is dropped.
G-015 MUST   HTTPS, and HTTP over a Unix socket, serve the same protocol.
G-016 MUST   On a bare socket each message stands behind its length; answers come in order.
G-017 MUST*  On a bare socket, a length of 0 or above the limit: an error, then the end.
G-018 MUST*  On a bare socket, an end inside a message: closed, and nothing is invoked.
G-019 MUST*  On a bare socket, requests run one at a time, and reading pauses.
G-020 PEER   Go answers failures with 400 and text.
G-021 MUST   Every position, size and reference of a buffer is checked before it is used.
G-022 MUST   The stock accessors are not used on unchecked input.
G-023 MUST   Strings need no zero behind them.
G-024 MUST*  Misaligned positions are tolerated.
G-025 MUST*  Shared references are legal, and counted each time.
G-026 MUST*  Bytes behind the last object are ignored.
G-027 MUST   Unknown slots are ignored; missing ones have defaults.
G-028 MUST   A request type that is none, or an inference that is absent, is refused.
G-029 MUST*  A MetadataRequest needs no table.
G-030 MUST   Names are UTF-8.
G-031 MUST   The config is any bytes and reaches the function; parsed only if it asks for JSON.
G-032 MUST*  Random changes of a request never crash or hang the server.
G-033 MUST   Data is little-endian, row-major and exactly as long as shape and type say.
G-034 MUST   Data and string_val together are refused.
G-035 MUST   A String tensor has as many strings as elements, of any bytes.
G-036 MUST   Trailing zeros of strings are kept.
G-037 MUST   Other types with string_val are refused.
G-038 MUST*  Rank 0, shape absent or empty, is a scalar of one element.
G-039 PEER   Go's simple server refuses scalars.
G-040 MUST*  A size of zero: no data, and the shape is kept.
G-041 MUST*  A negative size is refused.
G-042 MUST*  A shape whose product overflows is computed exactly, and refused.
G-043 MUST   Type Null, or an unknown one, is refused.
G-044 MUST   Float16 is kept bit by bit.
G-045 MUST*  Arrays are aligned, and read-only.
G-046 MUST*  Outputs of Python's types, bool and big-endian arrays have their types.
G-047 MUST*  What no tensor can hold is a bad output.
G-048 MUST   Outputs that are not contiguous come in row-major order.
G-049 MUST*  Bits of NaN and -0.0 survive.
G-050 MAY    A client writes data from the array's own buffer.
G-051 MUST   There are as many input names as tensors, or none.
G-052 MUST   Without names tensors are the inputs in order.
G-053 MUST   An empty name is the default at its place.
G-054 MUST*  Unknown and duplicate names of inputs are refused.
G-055 MUST   A missing input and a surplus tensor are refused.
G-056 MUST*  Inputs with defaults may be left out.
G-057 MUST   Outputs come in the order of their names, a repeated one twice.
G-058 MUST   Without names all outputs come in declared order.
G-059 MUST   An unknown or empty name of an output is refused.
G-060 SHOULD Only outputs that are wanted are computed.
G-061 MUST*  Another type than the declared one is refused.
G-062 MUST   Another rank or fixed size is refused; -1 takes any, also 0.
G-063 MUST   Inputs of a batch have the same leading size.
G-064 MUST   An InferResponse has tensors or errors, never both.
G-065 MUST   An exception of the function: E14, without traceback.
G-066 MUST*  Outputs that are not those which were declared: E18.
G-067 MUST   No tensors are legal for a function without inputs.
G-068 MUST*  What is declared is in the metadata; what is not is Null.
G-069 MUST   Inputs have the names of parameters; input<i> and output<i> always work.
G-070 MUST*  Tensors reach the inputs that they are named for, whatever their order.
G-071 MUST*  An output gives exactly one value, where its first size is fixed.
G-072 MUST*  Several values are joined along a first size of -1.
G-073 MUST*  A function of rows gets and gives one value a row; other counts are E18.
G-074 MUST*  Functions without arrays get lists and text; what cannot be is refused before.
G-075 MUST   Generators are closed on error, timeout and disconnect.
G-076 MAY    Requests that come together are joined into one batch; errors stay apart.
G-077 MUST*  Requests with another config or other outputs are not joined.
G-078 MUST   One unnamed tensor in, one out works without names.
G-079 MUST*  Too late is E15, too many at once E16 with Retry-After.
G-080 MUST   Codes are stable.
G-081 MUST*  Each code has its HTTP status; if configured all have 200.
G-082 MUST   Error bodies are InferResponses, also for metadata; X-GraphPipe-Error has the code.
G-083 MUST   Messages are UTF-8 of at most 4096 bytes.
G-084 MAY    A response may have several errors.
G-085 MUST*  A client reads the body whatever the status.
G-086 PEER   A server may send 200 with errors, or without tensors.
G-087 MUST   Metadata have every vector, and each input and output a name, a shape and a type.
G-088 MUST   Inputs and outputs are in declared order.
G-089 PEER   The stock Python builder reverses inputs and outputs.
G-090 PEER   The stock Python client takes types of inputs from outputs.
G-091 MUST   -1 in shapes is kept.
G-092 MUST*  Metadata work while the function is overloaded.
G-093 MUST   The client has the functions of the stock one.
G-094 MUST   The client checks the number of names before it sends.
G-095 MUST*  The client takes text and bytes, and gives bytes.
G-096 MUST*  The client checks responses as a server does requests.
G-097 SHOULD* The client knows http, https, unix+http, tcp and unix.
G-098 MUST   The client refuses another number of tensors than it asked for.
G-099 MUST   A shape is always written, empty for scalars.
G-100 MUST*  GET's JSON and the MetadataResponse agree.
G-101 MUST*  One request never affects another.
G-102 MUST*  Large bodies are read and written beside the event loop.
G-103 MUST*  Peak memory is at most three times the size, and 16 MiB.
G-104 MUST   Draining: not ready, running requests finish, new ones are refused.
G-105 SHOULD* One line of log a request, without values.
G-106 MUST*  Configs are not logged.
G-107 MUST*  Other fronts' routes never reach this decoder.
G-108 SHOULD* X-Request-Id and traceparent reach the invocation's context.
G-109 MUST*  An Accept without application/octet-stream is refused.
G-110 MUST   HTTP/1.0 without keep-alive gets the whole body, then the end.
G-111 PEER   The stock Python servers end a body by closing.
G-112 PEER   Go resets the connection on malformed input.
"""

REQUIREMENTS = read_table(_TABLE, _UNJUDGED)
"""Every requirement of the catalogue by its id, in its order."""
