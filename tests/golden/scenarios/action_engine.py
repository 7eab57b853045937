"""Sessions of action-engine: fragments and actions in every order, what functions give, and how sessions end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

from invoker.core.steps import Emitted, Finished, OutputEnded, Wants
from invoker.errors import (
    CallError,
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    FunctionError,
    InternalError,
    LimitExceeded,
    NotAcceptable,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    Status,
    StatusError,
    UnsupportedMediaType,
)
from invoker.message import EMPTY, Message
from invoker.protocols.evergreen.action_engine.wire import (
    ABORT,
    END,
    Action,
    Chunk,
    Fragment,
    Metadata,
    NodeRef,
    decode,
    encode,
)
from invoker.protocols.evergreen.action_engine.wire import HALF_CLOSE as BYE
from tests.golden.recorder import HALF_CLOSE, Scenario, Trace, play
from tests.protocols.evergreen.action_engine import functions
from tests.protocols.evergreen.action_engine.recordings import CONVERSATIONS, LAYOUTS, messages
from tests.protocols.evergreen.action_engine.sessions import ECHO, item, made, status

CONCAT = Action("A", "concat", (("a", "A#a"), ("b", "A#b")), (("y", "A#y"),))
SPLIT = Action("S", "split", (("xs", "S#xs"),), (("even", "S#e"), ("odd", "S#o")))
FUNCTIONS = tuple(getattr(functions, name) for name in functions.__all__)


def _said(*parts: Fragment | Action, **headers: str) -> bytes:
    """One message of the peer."""
    fragments = [one for one in parts if isinstance(one, Fragment)]
    return encode(fragments, [one for one in parts if isinstance(one, Action)], headers)


def _out(data: bytes, index: int = 0, key: str = "1", media_type: str = "text/plain", **headers: str) -> Emitted:
    return Emitted(key, index, Message(data, headers or EMPTY, media_type))


def _over(key: str = "1", error: Any = None) -> Finished:
    return Finished(key, error)


def _refer(id: str, of: str, **span: int) -> Fragment:
    return Fragment(id, NodeRef(of, **span), 0)


_X = [item("A#x", seq, b"%d" % seq) for seq in range(6)]

_ACTIONS: dict[str, Action] = {
    "echo": ECHO, "concat": CONCAT, "split": SPLIT, "without ports": Action("A", "echo"),
    "without outputs": Action("A", "echo", (("x", "n"),)),
    "unknown": Action("A", "ecoh", (("x", "A#x"),), (("y", "A#y"),)),
    "unknown input": Action("A", "echo", (("z", "n"),)),
    "unknown output": Action("A", "split", (("xs", "n"),), (("nope", "m"),)),
    "one output": Action("A", "split", (("xs", "n"),), (("odd", "m"),)),
    "missing input": Action("A", "concat", (("a", "n"),)),
    "default": Action("A", "greet", (("name", "n"),), (("y", "m"),)),
    "both greetings": Action("A", "greet", (("greeting", "g"), ("name", "n")), (("y", "m"),)),
    "no parameters": Action("A", "now", (), (("y", "m"),)),
    "any number": Action("A", "total", (("parts", "n"), ("parts", "m")), (("y", "o"),)),
    "any names": Action("A", "gather", (("k", "n"), ("l", "m"))),
    "any outputs": Action("A", "tag", (("xs", "n"),), (("a", "m"), ("b", "o"))),
    "the same node": Action("A", "concat", (("a", "n"), ("b", "n"))),
    "an input twice": Action("A", "concat", (("a", "n"), ("a", "m"), ("b", "o"))),
    "reads its output": Action("A", "echo", (("x", "n"),), (("y", "n"),)),
    "headers": Action("A", "echo", (("x", "n"),), (), {"hk": "hv"}), "empty id": Action("", "echo", (("x", "n"),)),
    "empty name": Action("A", ""), "alias": Action("A", "single", (("text", "n"),)),
    "the listing": Action("A", "__list_actions__", (), (("actions", "l"),)),
    "a long name": Action("A", "x" * 50),
    "an output twice": Action("A", "split", (("xs", "n"),), (("even", "m"), ("odd", "m"))),
}  # fmt: skip

_ERRORS = [
    FunctionError("ValueError: boom"), CallError("x"), DeadlineExceeded("x"), LimitExceeded("x"), Overloaded("x"),
    ShuttingDown("x"),
    Cancelled("x"), InternalError("secret"), DecodeError("x"), NotAcceptable("x"), UnsupportedMediaType("x"),
    ProtocolViolation("x"),
    StatusError(Status.NOT_FOUND, "no row"), StatusError(Status.DATA_LOSS, ""), FunctionError("ü" * 3000),
]  # fmt: skip

_FRAGMENTS: dict[str, list[Any]] = {
    "in order": [_said(one) for one in _X[:3]],
    "out of order": [_said(_X[2]), _said(_X[0]), _said(_X[1])],
    "twice": [_said(_X[0]), _said(_X[0]), _said(item("A#x", 0, b"other"))],
    "without a place": [_said(item("A#x", None, b"a")), _said(item("A#x", None, b"b"))],
    "a place below zero": [_said(item("A#x", -1))],
    "a place too high": [_said(item("A#x", 1 << 40))],
    "the last one": [_said(item("A#x", 1, b"b", last=True)), _said(_X[0]), _said(_X[2])],
    "an end": [_said(_X[0]), _said(Fragment("A#x", END, 1)), _said(_X[2])],
    "two ends": [_said(Fragment("A#x", END, 1)), _said(Fragment("A#x", END, 2)), _said(_X[0])],
    "an end before what came": [_said(_X[3]), _said(Fragment("A#x", END, 1))],
    "attributes": [_said(Fragment("A#x", Chunk(b"x", metadata=Metadata("text/plain", 5, {"role": "user"})), 0,
        continued=True))],
    "no metadata": [_said(Fragment("A#x", Chunk(b"x"), 0, continued=True))],
    "empty text": [_said(Fragment("A#x", Chunk(b"", metadata=Metadata("text/plain")), 0, continued=True))],
    "a uri": [_said(Fragment("A#x", Chunk(ref="data:,x"), 0, continued=True))],
    "a status": [_said(status("A#x")), _said(_X[0])],
    "a failed status": [_said(status("A#x", FunctionError("boom")))],
    "a reference": [_said(item("other", 0, b"o", last=True)), _said(_refer("A#x", "other"))],
    "a span": [_said(_refer("A#x", "other", offset=1, length=1))],
    "its output": [_said(item("A#y"))],
    "an abort": [_said(_X[0]), _said(status(ABORT)), _said(_X[1])],
    "an abort with an error": [_said(status(ABORT, FunctionError("boom")))],
    "many at once": [_said(*_X)],
    "no message": [b"\xff\xfe\xfd"],
    "cut off": [_said(_X[0])[:-3]],
    "a text": ["hello"],
    "a half-close": [_said(_X[0]), BYE, _said(_X[1])],
    "a long id": [_said(item("x" * 2000))],
}  # fmt: skip


def scenarios() -> dict[str, Scenario]:
    """By action, by fragments, by what functions give, by order; then limits."""
    made: dict[str, Scenario] = {}
    for name, action in _ACTIONS.items():
        nodes = [one for _, one in action.inputs]
        said = [_said(*(item(one, 0, b"%d" % at, last=True) for at, one in enumerate(nodes)))]
        acts = [_said(action, wk="wv"), *said, Wants("1", 0), _out(b"out"), _out(b"more", 1), _over(), HALF_CLOSE]
        made[f"action: {name}"] = _played(
            acts, metadata={"user-agent": "test"}, actions={"single": "echo"}, inputs={"text": "x"}
        )
    for name, acts in _FRAGMENTS.items():
        made[f"fragments: {name}"] = _played([_said(ECHO), *acts, Wants("1", 0), HALF_CLOSE, Wants("1", 0, waits=True)])
        made[f"fragments before the action: {name}"] = _played([*acts, _said(ECHO), Wants("1", 0), _over(), HALF_CLOSE])
    for turn, error in enumerate(_ERRORS):
        read = Action("B", "echo", (("x", "A#y"),), (("y", "B#y"),))
        made[f"ends with {turn} {error.status.name}"] = _played(
            [_said(ECHO, read), _out(b"a"), _over("1", error), _over("1"), HALF_CLOSE]
        )
    for name in CONVERSATIONS:
        made[f"recorded: {name}"] = _recorded(name)
    for name, packed in LAYOUTS.items():
        made[f"layout: {name}"] = _played([packed])
    return made | _given() | _orders() | _limits()


def _played(acts: Sequence[Any], *, farewell: Any = None, **settings: Any) -> Scenario:
    def scenario(trace: Trace) -> None:
        session = made(*FUNCTIONS, **settings)
        recorded = trace.session(session, reads=decode, writes=decode)
        for act in acts:
            play(recorded, [act])
            if session.stalled or session.is_full or session.hears_waits:
                full, hears = session.is_full, session.hears_waits
                trace.write(f"stalled {trace.shown(session.stalled)} full {full} hears {hears} held {session.held}")
        error = farewell or ProtocolViolation("bad")
        for frame in session.farewell(error):
            trace.write(f"farewell {trace.shown(decode(frame))}")

    return scenario


def _recorded(name: str) -> Scenario:
    """What a client said, with events of functions between its messages."""
    acts: list[Any] = []
    for number, message in enumerate(messages(name, ">"), 1):
        acts += [message, Wants("1", 0), _out(b"%d" % number)]
    return _played([*acts, _over("1"), _over("2")], actions={"single": "echo", "slow": "echo", "stream": "echo"})


def _given() -> dict[str, Scenario]:
    courses: dict[str, list[Any]] = {
        "values": [_out(b"a"), _out(b"b"), _out(b"c", media_type="image/png", role="user")],
        "empty bytes": [_out(b"", media_type=""), _out(b"", media_type="application/octet-stream"), _out(b"")],
        "two outputs": [_out(b"x", 1), OutputEnded("1", 1), _out(b"y", 0), OutputEnded("1", 0)],
        "behind an end": [OutputEnded("1", 0), _out(b"x", 0), OutputEnded("1", 0)],
        "an unknown output": [_out(b"x", 7), OutputEnded("1", 7), Wants("1", 7)],
        "an unknown action": [_out(b"x", 0, "9"), OutputEnded("9", 0), _over("9"), Wants("9", 0)],
        "a long item": [_out(bytes(100)), _out(bytes(101))],
        "a null chunk": [_out(b"", media_type="application/octet-stream", a="b")],
    }
    made: dict[str, Scenario] = {}
    for name, events in courses.items():
        for action in (ECHO, SPLIT, Action("A", "split", (("xs", "n"),))):
            made[f"{action.name}{len(action.outputs)} gives {name}"] = _played(
                [_said(action), *events, _over(), HALF_CLOSE], item_bytes=100
            )
    return made


def _orders() -> dict[str, Scenario]:
    """Two actions in a row, one that reads what the other writes."""
    first, second = (
        Action("F", "echo", (("x", "in"),), (("y", "mid"),)),
        Action("G", "echo", (("x", "mid"),), (("y", "out"),)),
    )
    parts = [first, second, item("in", 0, b"a"), Fragment("in", END, 1)]
    made: dict[str, Scenario] = {}
    for number, order in enumerate(permutations(parts)):
        events = [_out(b"1"), _out(b"2", 0, "2"), Wants("2", 0, waits=True), BYE, _over("1"), _over("2")]
        made[f"order {number}"] = _played([*map(_said, order), *events] if number % 2 else [_said(*order), *events])
    return made


def _limits() -> dict[str, Scenario]:
    ahead = [_said(ECHO), *(_said(one) for one in _X)]
    wants = [Wants("1", 0)] * 3
    both = [
        _said(CONCAT),
        *(_said(item("A#b", seq)) for seq in range(10)),
        Wants("1", 0, waits=True),
        _said(item("A#a")),
    ]
    return {
        "window of 2": _played([*ahead, *wants, HALF_CLOSE, Wants("1", 0, waits=True)], window=2),
        "window of 1, full": _played([*ahead, *ahead[1:3], *wants, *wants], window=1, high_bytes=500),
        "just full": _played([*ahead, *wants], window=1, high_bytes=640),
        "who waits is read for": _played(both, window=1, high_bytes=1000),
        "an end lets go": _played([*ahead, _over(), *ahead[1:2], Wants("1", 0)], window=1, high_bytes=300),
        "the session is full": _played(
            [_said(*(item("n", seq) for seq in range(at, at + 9))) for at in range(0, 90, 9)], session_bytes=5000
        ),
        "nodes": _played([_said(item(f"n{number}")) for number in range(5)], nodes=3),
        "names": _played([_said(Action("A", "x" * 5))], name_bytes=4),
        "names of ports": _played([_said(Action("A", "echo", (("x" * 5, "n"),)))], name_bytes=4),
        "names of nodes": _played([_said(item("12345")), _said(item("1234"))], name_bytes=4),
        "actions at once": _played(
            [_said(ECHO), _said(Action("B", "echo")), _over(), _said(Action("B", "echo")), BYE], actions_running=1
        ),
        "the same id": _played([_said(ECHO), _said(ECHO), _over(), _said(ECHO)]),
        "nothing": _played([HALF_CLOSE, HALF_CLOSE]),
        "an empty message": _played([_said()]),
        "aborted": _played([_said(ECHO)], farewell=Cancelled("x")),
        "left": _played([_said(ECHO, SPLIT), _over("2")], farewell=ShuttingDown("bye")),
    }
