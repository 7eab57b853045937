"""The requirements of the tool bridge that a report cites: id, level, a sentence, and which no outsider can judge.

The full wording, with sources and reasons, is in ``docs/reference/tool-bridge.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import read_table

__all__ = ["REQUIREMENTS"]

_INSIDE = "needs a view inside the process"
_CLIENT = "what a client does, or has to bear"
_START = "needs the target's start or end to be watched"
_TIME = "takes minutes of waiting"
_LOG = "what the target writes into its log"
_AGENTS = "needs a language model that the suite scripts"
_HOST = "needs the suite to serve tools of its own"

_UNJUDGED = {
    "T-007": _TIME,
    "T-008": _TIME,
    "T-011": _TIME,
    "T-012": "takes 10 000 sessions",
    "T-034": _START,
    "T-035": _INSIDE,
    "T-039": _INSIDE,
    "T-049": _INSIDE,
    "T-060": "an operator chooses it",
    "T-066": "needs an error class of the target",
    "T-068": _CLIENT,
    "T-074": "an option of the target's functions",
    "T-079": _CLIENT,
    "T-084": "needs a class of the target",
    "T-086": _INSIDE,
    "T-087": _TIME,
    "T-094": _TIME,
    "T-108": "needs pandas on both sides",
    "T-114": "needs numpy in the target",
    **{f"T-{n}": _AGENTS for n in range(133, 150)},
    "T-153": _START,
    "T-158": _INSIDE,
    "T-162": _CLIENT,
    "T-163": _TIME,
    "T-164": _START,
    "T-165": _START,
    "T-166": _START,
    "T-167": _LOG,
    "T-168": _LOG,
    **{f"T-{n}": _HOST for n in range(169, 176)},
    "T-176": _START,
    "T-177": _INSIDE,
}

_TABLE = """
T-001 MUST    InitializeSession with a fresh id creates the session and reports how many tools it can call.
T-002 MUST    Empty session_id is refused; there is no response field to return a generated one.
T-003 MUST*   A session_id is 1 to 256 bytes of UTF-8 without control characters.
T-004 MUST    The same request again is idempotent.
T-005 MUST    The same id with another config, callback or metadata is refused.
T-006 MUST*   A config or value that is absent or 0 means the default; a negative one is refused.
T-007 MUST    Every rpc that names the session, and every end of an operation, keeps it alive.
T-008 MUST    Expired session is treated as gone at access time, even before the sweeper ran.
T-009 MUST*   Never-seen session id gives the same type as an expired one.
T-010 MUST*   A session with running tools, batches or agents does not expire; open watches do not keep it alive.
T-011 MUST    A sweeper frees all that expired sessions held.
T-012 MUST    More than max_sessions (10 000) refuses new sessions and keeps old ones.
T-013 MUST    CleanupSession with active_operations>0 and force=false changes nothing.
T-014 MUST    Cleanup with force cancels all operations, closes watches, then deletes.
T-015 MUST    Cleanup of an unknown session succeeds (idempotent).
T-016 MUST    GetSessionInfo returns live counters; active_operations excludes the call itself.
T-017 MUST    Sessions are isolated: variables, agents, caches, rate counters and request ids never cross.
T-018 SHOULD  Metadata size capped at 32 entries / 4096 bytes.
T-019 PEER    A call may come without a session: refused, or the session is made if so configured.
T-020 MUST*   An explicit re-initialize after cleanup or expiry starts empty.
T-021 MUST    Each function is one tool, called by its id or its name.
T-022 MUST    Names follow the Snakepit pattern; a bad or duplicate name stops the process at load.
T-023 MUST    Arguments are the parameters in their order, without injected ones.
T-024 MUST    Required means without a default; the default is sent.
T-025 MUST    A python_type is the annotation as it is spelled.
T-026 MUST    An elixir_type belongs to each annotation.
T-027 MUST    Literal and Enum annotations fill allowed_values.
T-028 MUST*   Descriptions come from the docstring.
T-029 MUST    Generators are STREAMING, others BATCH, COMPOSITE or STANDARD.
T-030 MUST*   The return_type is named return, and is that of the items of a generator.
T-031 SHOULD  Examples are the lines of the docstring that begin with >>>.
T-032 MUST    Limits and rules in a specification are the enforced ones.
T-033 MUST    GetSessionTools lists local tools sorted by name, then callback tools.
T-034 MUST*   What cannot be called fails at load.
T-035 MUST*   A function with several streams has one argument for each.
T-036 MUST    An unknown tool is ToolNotFound.
T-037 MUST    Arguments bind as in a call of Python; each mistake has a code.
T-038 MUST*   Positional-only and keyword-only parameters are kept apart.
T-039 MUST*   Unknown keywords pass only with **kwargs.
T-040 MUST*   Types are checked without silent casts.
T-041 MUST*   What is no exact int, and None where it is not allowed, are refused.
T-042 MUST    A pattern is searched for anywhere in the value.
T-043 MUST*   A pattern looks at 65 536 characters at most.
T-044 MUST    Bounds are inclusive, and NaN is within none.
T-045 MUST*   A bound of 0 differs from none.
T-046 MUST*   Lengths count code points, bytes or items.
T-047 MUST    Values that are not among the allowed ones are refused.
T-048 MUST    Custom rules are named; one that raises fails only itself.
T-049 MUST*   The rules of a tool apply to its result.
T-050 MUST*   All violations of a call are told together.
T-051 MUST    A refused call runs nothing and takes no rate token.
T-052 MUST    An argument that cannot be decoded is told with its type.
T-053 MUST*   More than 64 levels or a million elements are refused.
T-054 MUST    The shortest of deadline, tool limit and request or default time counts.
T-055 MUST*   A negative timeout_ms is refused.
T-056 MUST    The deadline of the caller ends the rpc and the function.
T-057 MUST*   On timeout, async functions are cancelled and sync ones left alone.
T-058 MUST    Too many calls at once, of a tool or in a session, fail at once.
T-059 MUST    Calls a minute are limited for each session and tool.
T-060 SHOULD  A global rate limit comes first.
T-061 MUST    Memory is limited in process isolation.
T-062 MUST    A result above the limit is refused by an error.
T-063 MUST    A request above the limit is refused by a status.
T-064 MUST    A success has a result, the request id and metrics.
T-065 MUST    An exception is InternalError with its text and class.
T-066 MUST*   A tool may choose its error among the six types.
T-067 MUST    A generator gives a list of at most 1000 items.
T-068 PEER    Snakepit returns an error as a result.
T-069 MUST    The context of a call reaches the function.
T-070 MUST    With caching, a request id runs once.
T-071 MUST*   A request id of another request is refused.
T-072 MUST*   A failure is not stored.
T-073 MUST    Without caching, a request id is only echoed.
T-074 MAY     Results of cacheable tools may be reused.
T-075 MUST*   A duplicate survives the caller of the first.
T-076 MUST    Chunks are numbered, with one id, and end with complete or error.
T-077 MUST    complete counts the chunks of data.
T-078 MUST    Errors are the last chunk, behind all data.
T-079 PEER    Snakepit aborts the rpc instead.
T-080 MUST    Large bytes are split behind bytes_total.
T-081 MUST    With back-pressure, a generator is ahead by its buffer at most.
T-082 MUST*   Without back-pressure, at most 10 MB are held and nothing is dropped.
T-083 MUST    A caller that cancels closes the generator within a second.
T-084 MUST    Metadata that is yielded is a chunk in its place.
T-085 MUST*   A plain function streams one chunk and complete.
T-086 MUST*   Chunks of several outputs are told apart by resultIndex.
T-087 MUST    A stream ends after its time.
T-088 MUST    Results of a batch are in the order of the items.
T-089 MUST    A batch runs one by one, or up to max_parallel.
T-090 MUST    stop_on_error starts no item behind a failure.
T-091 MUST    One bad item never fails the batch rpc.
T-092 MUST    0 items are fine, more than 100 are refused.
T-093 MUST*   An index twice and a negative max_parallel are refused.
T-094 MUST    A batch has a deadline.
T-095 MUST    The metrics of a batch add up.
T-096 MUST    Items obey the limits of their tools.
T-097 MUST    A bool is no int, in containers neither.
T-098 MUST*   None is a packed null, and several forms of it are read.
T-099 MUST*   Integers of any size come back exactly.
T-100 MUST    Floats come back bit by bit.
T-101 MUST    Bytes are BytesValue.
T-102 MUST    Lists are ListValue, dicts Struct.
T-103 MUST*   Large integers and bytes in containers are tagged objects.
T-104 MUST*   A dict with keys that are no text is refused.
T-105 MUST*   Whole numbers of containers become ints.
T-106 MUST*   All wrappers, Value, Empty, Timestamp and Duration are read.
T-107 MUST    What is behind the last slash of a type_url counts.
T-108 MUST    A DataFrame is parquet.
T-109 MUST    An object of a foreign class is opaque text.
T-110 MUST    Nothing is unpickled.
T-111 PEER    Snakepit's own forms of Any are read.
T-112 PEER    JSON that Snakepit labels StringValue or Value is read.
T-113 MUST*   Cycles and objects without a form are an error.
T-114 MUST    numpy scalars and small arrays have forms.
T-115 MUST    Reading a missing variable is no error.
T-116 MUST    Metadata comes only if asked for.
T-117 MUST    A variable may hold None.
T-118 MUST    A missing variable is made only if asked.
T-119 MUST*   An absent value deletes.
T-120 MUST    The bridge owns times and type; tags stay unless sent.
T-121 MUST*   updated_at increases with each write.
T-122 MUST*   The type is one of ten names.
T-123 MUST    Variables are listed by name, prefix, tags and limit.
T-124 MUST*   size_bytes is the size of the encoded Any.
T-125 MUST*   Names and the number of variables are limited.
T-126 MUST    Functions see the same variables.
T-127 MUST    A watch begins with what is there, without gap or duplicate.
T-128 MUST    An update says set, update or delete.
T-129 MUST*   No names means all; missing ones are told when made.
T-130 MUST*   Updates are in order; a slow reader gets the latest.
T-131 MUST*   A watch ends with its reader or its session.
T-132 MUST*   An equal value is an update, too.
T-133 MUST    A malformed signature is refused.
T-134 MUST    No tool names means all; an unknown one is an error.
T-135 MUST    max_iters 0 means 5; below 0 and above 100 are refused.
T-136 MUST    An agent_id is react_SESSION_8 hex digits.
T-137 MUST*   A model is one that the operator allows.
T-138 MUST*   Without any model, no agent is made.
T-139 MUST*   API keys come from the environment of the bridge.
T-140 MUST    A run streams thought, action and observation of each step, then the result.
T-141 MUST*   stream=false sends the result alone.
T-142 MUST    Steps are in the result only if asked for.
T-143 MUST*   A bad choice of the model is an observation.
T-144 MUST*   After max_iters one call extracts the answer.
T-145 MUST*   A model that fails is asked again, twice.
T-146 MUST*   Input that does not fit the signature is refused.
T-147 MUST*   An unknown agent is NOT_FOUND.
T-148 MUST    Tools of agents go the way of all calls.
T-149 MUST*   A cancelled run stops its tool and asks no model.
T-150 MUST*   Health is told of known services.
T-151 MUST*   An unknown service is NOT_FOUND.
T-152 MUST    Dependencies are told and are not fatal.
T-153 MUST*   A draining bridge says so and makes no session.
T-154 MUST    GetMetrics: empty names = all; exact names; unknown names are left out.
T-155 MUST*   Metrics have fixed names.
T-156 MUST*   Histograms are cumulative.
T-157 MUST*   Metrics may be asked of a time.
T-158 MUST    Without telemetry there are no metrics of the session.
T-159 MUST    Errors are of six types and have a time.
T-160 MUST*   Errors are in-band where there is a field, else in the trailer.
T-161 MUST    Each type has its status.
T-162 MUST    A client tells errors of the bridge from failures of the rpc.
T-163 MUST    Messages, keep-alive and idle connections are limited.
T-164 MUST    mTLS refuses callers without a trusted certificate.
T-165 MUST    TLS below 1.3 is refused by a front.
T-166 MUST*   Without TLS, only loopback is bound unless asked.
T-167 MUST    Every tool execution is audited.
T-168 MUST*   An audit that fails fails no call.
T-169 MUST    A callback address is called at the start.
T-170 MUST*   Callback addresses have to be allowed.
T-171 MUST*   Callback tools are named callback:NAME.
T-172 MUST*   Functions call tools of the host, with deadline and hops.
T-173 MUST*   Errors of the host keep type and message.
T-174 MUST    Callbacks work in mid stream.
T-175 MUST    The correlation id is handed on.
T-176 SHOULD  Phases leave rpcs out.
T-177 MUST*   Every rpc is one invocation.
T-178 PEER    A client of snakepit.bridge gets UNIMPLEMENTED.
"""

REQUIREMENTS = read_table(_TABLE, _UNJUDGED)
"""Every row of the catalogue by its id, in its order."""
