"""Rpcs of the tool bridge in one process: sessions, tools, batches, variables, agents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import ANY, pack
from invoker.core.limits import LimitReached
from invoker.core.spaces import StoreLimits
from invoker.core.steps import Finished
from invoker.errors import (
    Cancelled,
    FunctionError,
    ShuttingDown,
)
from invoker.message import METADATA, Message
from invoker.protocols.toolbridge.batch import BatchExecuteTools
from invoker.protocols.toolbridge.execute import ExecuteTool
from invoker.protocols.toolbridge.health import HealthCheck
from invoker.protocols.toolbridge.metrics import GetMetrics
from invoker.protocols.toolbridge.sessions import CleanupSession, GetSessionInfo, GetSessionTools, InitializeSession
from invoker.protocols.toolbridge.stream import StreamTool
from invoker.protocols.toolbridge.tally import Tally
from invoker.protocols.toolbridge.unary import Unbuilt
from invoker.protocols.toolbridge.variables import GetSessionVariable, ListSessionVariables, SetSessionVariable
from invoker.protocols.toolbridge.watch import WatchSessionVariables
from tests.golden.recorder import HALF_CLOSE, Scenario, Trace
from tests.golden.scenarios import agents
from tests.golden.scenarios.bridge import SECOND, Talk, World, anys, errors
from tests.golden.stillness import NOW_S
from tests.protocols.toolbridge.calls import emitted


def _call(tool: str = "square", *args: Any, **fields: Any) -> pb.ToolCallRequest:
    kwargs = {name: anys(value)[0] for name, value in fields.pop("kwargs", {}).items()}
    return pb.ToolCallRequest(**{"session_id": "s1", "tool_id": tool, "args": anys(*args), "kwargs": kwargs, **fields})


def _stream(tool: str, *args: Any, **fields: Any) -> pb.ToolStreamRequest:
    return pb.ToolStreamRequest(
        **{"session_id": "s1", "tool_id": tool, "args": anys(*args), "stream_id": "q", **fields}
    )


_CALLS: dict[str, pb.ToolCallRequest] = {
    "a value": _call("square", 5, request_id="r"), "by name": _call("greet", "ann", kwargs={"polite": True}),
    "no argument": _call("square"), "two": _call("square", 1, 2), "a text": _call("square", "x"),
    "unknown name": _call("square", 1, kwargs={"y": 1}),
    "twice": _call("square", 1, kwargs={"x": 1}), "unknown tool": _call("sqare", 1), "no tool": _call("", 1),
    "a stream": _call("count", 3),
    "out of range": _call("greet", "ann", kwargs={"times": 10}),
    "in range": _call("greet", "ann", kwargs={"times": 9}),
    "many": _call("many", 1, 2, 3), "keyed": _call("keyed", "a", kwargs={"b": [1]}), "bytes": _call("blob", b"\x00"),
    "nothing": _call("nothing"), "a time": _call("square", 5, timeout_ms=50),
    "a time too short": _call("square", 5, timeout_ms=-1),
    "context": _call("square", 5, context={"correlation_id": "c"}), "no session": _call("square", 5, session_id=""),
    "another session": _call("square", 5, session_id="s2"),
}  # fmt: skip


def scenarios() -> dict[str, Scenario]:
    """By rpc."""
    made: dict[str, Scenario] = {}
    done = [emitted(25), Finished("tool"), Finished("tool")]
    for name, request in _CALLS.items():
        made[f"execute: {name}"] = _one(ExecuteTool, request, done)
        stream = pb.ToolStreamRequest(
            session_id=request.session_id, tool_id=request.tool_id, args=request.args, stream_id="q"
        )
        made[f"stream: {name}"] = _one(StreamTool, stream, [emitted(1), emitted(2), Finished("tool")])
    for turn, error in enumerate(errors()):
        name = f"ends with {turn} {error.status.name}"
        made[f"execute: {name}"] = _one(ExecuteTool, _call("square", 5), _ending(turn))
        made[f"stream: {name}"] = _one(
            StreamTool, _stream("count", 3), lambda turn=turn: [emitted(1), *_ending(turn)()]
        )
    return made | _odd() | _batches() | {
        "sessions": _sessions, "sessions expire": _expiry, "variables": _variables, "watches": _watches,
        "limits": _limits,
        "health": _health, "metrics": _metrics, "repeated calls": _repeated, "sessions made by calls": _automatic,
        "a store that is full": _full,
    } | agents.scenarios(World)  # fmt: skip


def _ending(turn: int, key: str = "tool") -> Callable[[], list[Any]]:
    return lambda: [Finished(key, errors()[turn])]


def _one(kind: Any, request: Any, events: Any, **settings: Any) -> Scenario:
    def scenario(trace: Trace) -> None:
        world = World(trace, **settings)
        world.init()
        talk = world.ask(kind, request)
        if not talk.is_closed:
            talk.receive(HALF_CLOSE)
            talk.give(*(events() if callable(events) else events))
        talk.receive(b"more")
        world.note()

    return scenario


def _odd() -> dict[str, Scenario]:
    made: dict[str, Scenario] = {}
    long = [emitted(b"x" * 70_000), Finished("tool")]
    described = Message(pack("v"), {METADATA: "k"}, ANY)
    given: dict[str, list[Any]] = {
        "no value": [Finished("tool")], "two values": [emitted(1), emitted(2), Finished("tool")],
        "a long value": long,
        "a second output": [emitted(1, 1), emitted(2, 0), Finished("tool")],
        "metadata": [emitted(1), type(emitted(1))("tool", 0, described), Finished("tool")],
    }  # fmt: skip
    for name, events in given.items():
        made[f"execute: gives {name}"] = _one(ExecuteTool, _call("square", 5), events)
        made[f"stream: gives {name}"] = _one(StreamTool, _stream("count", 3), events)
    for size in (0, -1, 9_999, 70_006, 1 << 30):
        made[f"stream: chunks of {size}"] = _one(
            StreamTool, _stream("blob", b"a", config=pb.StreamConfig(chunk_size=size)), long
        )
    made["stream: no id"] = _one(StreamTool, _stream("count", 3, stream_id=""), [Finished("tool")])
    for kind in (
        ExecuteTool,
        StreamTool,
        BatchExecuteTools,
        InitializeSession,
        GetSessionVariable,
        WatchSessionVariables,
    ):
        made[f"{kind.__name__}: no request"] = _unasked(kind)
        made[f"{kind.__name__}: garbage"] = _one(kind, b"\xff", [])
    request = _call("square", 5)
    for size in (-1, 0):
        made[f"execute: limit {size}"] = _one(
            ExecuteTool, request, [Finished("tool")], message_bytes=request.ByteSize() + size
        )
    made["not served"] = lambda trace: trace.session(Unbuilt("GetMetrics")).half_close() and None
    return made


def _unasked(kind: Any) -> Scenario:
    def scenario(trace: Trace) -> None:
        talk = Talk(World(trace), kind(World(trace).host_sessions), kind)
        talk.receive(HALF_CLOSE)
        talk.receive(HALF_CLOSE)

    return scenario


def _batches() -> dict[str, Scenario]:
    def items(*tools: str) -> list[pb.ToolCallItem]:
        return [pb.ToolCallItem(index=7 - at, tool_id=tool, args=anys(at)) for at, tool in enumerate(tools)]

    def done(*keys: str) -> list[Any]:
        return [event for key in keys for event in (emitted(f"of {key}", key=key), Finished(key))]

    def failed(key: str, error: Any = None) -> Finished:
        return Finished(key, error or FunctionError("no"))

    full = LimitReached("full", code="concurrency", scope="function", limit=1)
    squares, config = items(*["square"] * 4), pb.BatchConfig
    courses: dict[str, tuple[Any, Any, list[Any]]] = {
        "one by one": (squares[:3], config(), done("0", "1", "2")),
        "in parallel": (squares, config(parallel=True), done("2", "0", "1", "3")),
        "two at once": (squares, config(parallel=True, max_parallel=2), done("1", "0", "2", "3")),
        "too many at once": (squares, config(parallel=True, max_parallel=-1), []),
        "twenty": (items(*["square"] * 20), config(parallel=True), done(*map(str, range(20)))),
        "stops on an error": (squares, config(stop_on_error=True), [*done("0"), failed("1")]),
        "stops while others run": (squares, config(parallel=True, max_parallel=3, stop_on_error=True),
            [failed("1"), *done("2", "0")]),
        "goes on behind an error": (squares, config(), [*done("0"), failed("1"), *done("2", "3")]),
        "some are wrong": (items("square", "none", "greet", "square"), config(), done("0", "3")),
        "all are wrong": (items("none", "none"), config(), []),
        "nothing": ([], config(), []),
        "the process leaves": (squares, config(parallel=True),
            [failed("0", ShuttingDown("bye")), *done("1", "2", "3")]),
        "cancelled": (squares, config(parallel=True), [failed("0", Cancelled("x")), *done("1", "2", "3")]),
        "full": (squares, config(parallel=True), [failed("3", full), *done("0", "1", "2"), *done("3")]),
        "full, and nothing runs": (squares[:1], config(), [failed("0", full)]),
        "a stream": (items("count", "square"), config(), done("0", "1")),
        "no value": (squares[:1], config(), [Finished("0")]),
        "many": (items(*["nothing"] * 1001), config(), []),
    }  # fmt: skip
    made: dict[str, Scenario] = {}
    for name, (given, how, events) in courses.items():
        request = pb.BatchToolCallRequest(session_id="s1", batch_id="b", items=given, config=how)
        made[f"batch: {name}"] = _one(BatchExecuteTools, request, events)
    made["batch: no session"] = _one(BatchExecuteTools, pb.BatchToolCallRequest(session_id="s2", items=squares), [])
    return made


def _sessions(trace: Trace) -> None:
    world = World(trace, StoreLimits())
    for session_id in ("", "x" * 256, "x" * 257, "é" * 129, "a\nb", "a\x7fb", "a b/c", "\u200b"):
        world.init(session_id)
    configs = (
        {},
        {"max_concurrent_tools": 2},
        {"max_concurrent_tools": -1},
        {"default_timeout_ms": -1},
        {"enable_caching": True},
    )
    for number, config in enumerate(configs):
        world.init(f"c{number}", config=pb.SessionConfig(**config), metadata={"a": "1"})
    world.init("s1", metadata={"a": "1"})
    world.init("s1", metadata={"a": "1"})
    world.init("s1", metadata={"a": "3"})
    world.init("s3", callback_address="127.0.0.1:5000")
    world.init("s3", callback_address="nowhere")
    world.host_sessions.now += 5 * SECOND
    for session_id in ("s1", "nobody", ""):
        world.ask(GetSessionInfo, pb.GetSessionInfoRequest(session_id=session_id))
        world.ask(GetSessionTools, pb.GetSessionToolsRequest(session_id=session_id))
    running = world.ask(ExecuteTool, _call("square", 5))
    world.ask(CleanupSession, pb.CleanupSessionRequest(session_id="s1"))
    world.ask(CleanupSession, pb.CleanupSessionRequest(session_id="s1", force=True))
    running.give(emitted(25), Finished("tool"))
    for session_id in ("s1", "c0", "nobody", ""):
        world.ask(CleanupSession, pb.CleanupSessionRequest(session_id=session_id))
    world.ask(GetSessionInfo, pb.GetSessionInfoRequest(session_id="s1"))
    world.init("s1")
    world.note()


def _expiry(trace: Trace) -> None:
    world = World(trace)
    world.init()
    for seconds in (59, 59, 60, 1):
        world.host_sessions.now += seconds * SECOND
        world.store.sweep()
        talk = world.ask(ExecuteTool, _call("square", seconds))
        talk.give(emitted(1), Finished("tool"))
        world.ask(GetSessionInfo, pb.GetSessionInfoRequest(session_id="s1"))
    world.note()


def _variables(trace: Trace) -> None:
    world = World(trace)
    world.init()

    def put(name: str, *value: Any, create: bool = True, **more: Any) -> None:
        request = pb.SetVariableRequest(session_id="s1", variable_name=name, create_if_missing=create, **more)
        if value:
            request.value.CopyFrom(anys(*value)[0])
        world.ask(SetSessionVariable, request)
        world.host_sessions.now += SECOND

    put("a", 1)
    put("a", "text", metadata=pb.VariableMetadata(type="mine", created_by="me", tags={"t": "1"}))
    put("b", [1, 2], create=False)
    put("b", {"k": None}, metadata=pb.VariableMetadata(tags={"t": "1"}))
    put("b", 3, create=False)
    for name in ("", "x" * 257, "a\nb", "ü"):
        put(name, 1)
    put("gone", 1)
    put("gone")
    put("gone")
    for name in ("a", "b", "gone", ""):
        for metadata in (False, True):
            request = pb.GetVariableRequest(session_id="s1", variable_name=name, include_metadata=metadata)
            world.ask(GetSessionVariable, request)
    for number in range(12):
        put(f"n{number:02}", number)
    for more in (
        {},
        {"prefix": "n0"},
        {"limit": 3},
        {"limit": -1},
        {"tags": ["t"]},
        {"tags": ["t", "u"]},
        {"prefix": "z"},
    ):
        world.ask(ListSessionVariables, pb.ListVariablesRequest(session_id="s1", **more))
    world.ask(ListSessionVariables, pb.ListVariablesRequest(session_id="nobody"))
    world.ask(GetSessionVariable, pb.GetVariableRequest(session_id="nobody", variable_name="a"))


def _watches(trace: Trace) -> None:
    world = World(trace)
    world.init()

    def put(name: str, *value: Any) -> None:
        given = {"value": anys(*value)[0]} if value else {}
        request = pb.SetVariableRequest(session_id="s1", variable_name=name, create_if_missing=True, **given)
        world.ask(SetSessionVariable, request)
        world.host_sessions.now += SECOND

    put("a", 0)
    requests = ({}, {"include_initial": True}, {"variable_names": ["a", "later"], "include_initial": True},
        {"variable_names": ["\n"]},
                {"variable_names": [f"n{number}" for number in range(10_001)]})  # fmt: skip
    talks = [world.ask(WatchSessionVariables, pb.WatchVariablesRequest(session_id="s1", **more)) for more in requests]
    for name, value in (("a", [1]), ("later", [2]), ("a", []), ("a", [3])):
        put(name, *value)
        for talk in talks:
            talk.tell()
    talks[0].receive(HALF_CLOSE)
    world.ask(CleanupSession, pb.CleanupSessionRequest(session_id="s1", force=True))
    for talk in talks:
        talk.tell()
    world.ask(WatchSessionVariables, pb.WatchVariablesRequest(session_id="s1")).tell()


def _limits(trace: Trace) -> None:
    world = World(trace, concurrent_tools=2)
    world.init()
    world.init("s2", config=pb.SessionConfig(max_concurrent_tools=1))
    talks = [world.ask(ExecuteTool, _call("square", 5, session_id=one)) for one in ("s1", "s1", "s1", "s2", "s2")]
    talks[0].give(emitted(1), Finished("tool"))
    world.ask(StreamTool, _stream("count", 3))
    world.ask(StreamTool, _stream("count", 3))
    world.host_sessions.drains = lambda: True
    world.init("s9")
    world.ask(ExecuteTool, _call("square", 5, session_id="s9"))
    world.note()


def _repeated(trace: Trace) -> None:
    world = World(trace)
    world.init(config=pb.SessionConfig(enable_caching=True))
    request = _call("square", 5, request_id="same")
    first = world.ask(ExecuteTool, request)
    second = world.ask(ExecuteTool, request)
    other = world.ask(ExecuteTool, _call("square", 6, request_id="same"))
    first.give(emitted(25), Finished("tool"))
    for talk in (second, other):
        if not talk.is_closed:
            talk.give(emitted(36), Finished("tool"))
    world.ask(ExecuteTool, request)
    world.note()


def _automatic(trace: Trace) -> None:
    world = World(trace, auto_session=True)
    for kind, request in (
        (ExecuteTool, _call("square", 5, session_id="new")),
        (StreamTool, _stream("count", 3, session_id="newer")),
    ):
        world.ask(kind, request).give(emitted(25), Finished("tool"))
    world.ask(ExecuteTool, _call("square", 5, session_id="a\nb"))
    world.note()


def _full(trace: Trace) -> None:
    world = World(trace, StoreLimits(spaces=2, items=2, space_bytes=400))
    for name in ("s1", "s2", "s3"):
        world.init(name)
    for name, value in (("a", 1), ("b", 2), ("c", 3), ("a", "x" * 300)):
        request = pb.SetVariableRequest(
            session_id="s1", variable_name=name, create_if_missing=True, value=anys(value)[0]
        )
        world.ask(SetSessionVariable, request)


def _health(trace: Trace) -> None:
    world = World(trace)
    found = {"llm": False, "callback:host": True, "isolation": None}
    for service in ("", "dspex.bridge.SnakepitBridge", "tools", "sessions", "variables", "agents", "tolls"):
        for serves, critical in (
            (True, ()),
            (False, ()),
            (True, ("llm",)),
            (True, ("callback",)),
            (True, ("isolation", "nope")),
        ):
            given = {"serves": lambda serves=serves: serves, "dependencies": lambda: found, "critical": critical}
            world.ask(HealthCheck, pb.HealthCheckRequest(service=service), **given)


def _metrics(trace: Trace) -> None:
    world = World(trace)
    tally = Tally(nullcontext(), clock=lambda: world.host_sessions.now / SECOND)
    world.host_sessions.observers.append(tally)
    world.init()
    world.ask(ExecuteTool, _call("square", 5)).give(emitted(25), Finished("tool"))
    world.ask(ExecuteTool, _call("square", 5)).give(Finished("tool", FunctionError("boom")))
    for names, times in (((), {}), (("tool.square.calls", "nope"), {}), ((), {"start_time": 2000, "end_time": 1000}),
                         ((), {"start_time": NOW_S - 60}), ((), {"end_time": NOW_S - 60}),
                         (["n"] * 10_001, {})):  # fmt: skip
        request = pb.GetMetricsRequest(metric_names=names)
        for name, seconds in times.items():
            getattr(request, name).seconds = seconds
        world.ask(GetMetrics, request, tally=tally, gauges=lambda: {"sessions.active": 2})
