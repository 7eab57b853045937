"""Sessions of Evergreen: nodes in every order, actions, references, extensions and limits."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

from google.protobuf import wrappers_pb2

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.core.steps import Finished, OutputEnded
from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
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
from invoker.fetch.errors import ReferenceFailed, ReferenceRefused
from invoker.message import Message
from tests.golden.recorder import HALF_CLOSE, Scenario
from tests.golden.scenarios.conversations import cancel, drop, emit, fetched, finish, played, struct, ttl, wants
from tests.protocols.evergreen.conversation import spec_of
from tests.protocols.evergreen.functions import (
    add,
    blobs,
    constant,
    either,
    join,
    loose,
    messages,
    named,
    objects,
    pick,
    raw,
    relay,
    rows,
    scale,
    several,
    sink,
    split,
    tagged,
    ticks,
    topk,
    total,
    upper,
)
from tests.protocols.evergreen.models import each, idle, source
from tests.protocols.evergreen.notation import A, F, K

UPPER = A("upper", {"x": "p"}, {"y": "r"})
RELAY = A("relay", {"x": "p"}, {"y": "r"})
TICKS = A("ticks", {}, {"y": "r"})
SPLIT = A("split", {"x": "p"}, {"left": "r1", "right": "r2"})
HTTP = "https://example.org/x"

_ALL = [upper, add, scale, pick, constant, raw, either, named, several]
_ECHOES = {"relay": each(str.upper)}


_LEAVES: dict[str, list[Any]] = {
    "whole": [[F("p", 0, "hi")]],
    "in pieces": [[F("p", 0, "a", more=True)], [F("p", 1, "b", more=True)], [F("p", 2, "c")]],
    "pieces in reverse": [[F("p", 2, "c")], [F("p", 1, "b", more=True)], [F("p", 0, "a", more=True)]],
    "twice the same": [[F("p", 0, "a", more=True)], [F("p", 0, "a", more=True)], [F("p", 1, "b")]],
    "twice, not the same": [[F("p", 0, "a", more=True)], [F("p", 0, "z", more=True)]],
    "behind the final one": [[F("p", 0, "a")], [F("p", 1, "b")]],
    "two final ones": [[F("p", 2, "a")], [F("p", 1, "b")]],
    "an empty end": [[F("p", 0, "a", more=True)], [F("p", 1)]],
    "nothing but an end": [[F("p")]],
    "a seq below zero": [[F("p", -1, "x")]],
    "no id": [[F("", 0, "x")]],
    "no metadata": [[F("p", 0, "x", type=None)]],
    "an empty type": [[F("p", 0, "x", mimetype="")]],
    "a strange type": [[F("p", 0, "x", type="nonsense")], [F("q", 0, "x", type="*/*")]],
    "metadata later": [[F("p", 0, "a", more=True)], [F("p", 1, "b", type="a/b")]],
    "the same metadata later": [[F("p", 0, "a", more=True)], [F("p", 1, "b", type="text/plain")]],
    "bytes": [[F("p", 0, b"\x00\xff", type="application/octet-stream")]],
    "no utf-8": [[F("p", 0, b"\xff")]],
    "json": [[F("p", 0, '{"a": 1}', type="application/json")]],
    "a role": [[F("p", 0, "x", role="user", original_file_name="f.txt")]],
    "an interior node": [[K("p", 0, "a", "b")], [F("b", 0, "2")], [F("a", 0, "1")]],
    "an interior node in pieces": [[K("p", 1, "b")], [K("p", 0, "a", more=True)], [F("a", 0, "1"), F("b", 0, "2")]],
    "a node with both": [[K("p", 0, "a", more=True)], [F("p", 1, "x")]],
    "no children": [[K("p", 0)]],
    "deep": [[K("p", 0, "a"), K("a", 0, "b"), K("b", 0, "c")], [F("c", 0, "x")]],
    "a cycle": [[K("p", 0, "a"), K("a", 0, "p")]],
    "a cycle of itself": [[K("p", 0, "p")]],
    "a child twice": [[K("p", 0, "a", "a")], [F("a", 0, "x")]],
    "an end of turn": [[F("p", 0, b"", type="application/x-protobuf; type=EndOfTurn")]],
    "garbage": [b"\xff", b"\n\xff\xff"],
    "bytes that are no utf-8": [b"\n\x03\n\x01\xff"],
    "an empty message": [b"", [F("p", 0, "x")], b""],
    "a data uri": [[F("p", 0, ref="data:;base64,aGkgeW91")]],
    "a data uri of text": [[F("p", 0, ref="data:,hi%20you", type="text/markdown")]],
    "a broken data uri": [[F("p", 0, ref="data:;base64,%%")]],
    "a scheme": [[F("p", 0, ref="ftp://x/y")]],
    "a relative uri": [[F("p", 0, ref="../x")]],
    "a uri": [[F("p", 0, ref=HTTP)], fetched(b"he", last=False), fetched(b"llo", last=False), fetched(b"")],
    "a uri that fails": [[F("p", 0, ref=HTTP)], fetched(error=ReferenceFailed("no"))],
    "a uri that is refused": [[F("p", 0, ref=HTTP)], fetched(error=ReferenceRefused("no"))],
    "a uri that is too long": [[F("p", 0, ref=HTTP)], fetched(b"x", last=False), fetched(error=LimitExceeded("x"))],
    "uris": [[K("p", 0, "a", "b"), F("a", 0, ref=HTTP), F("b", 0, ref=HTTP)], fetched(b"1"), fetched(b"2")],
}  # fmt: skip

_ACTIONS: dict[str, pb.Action] = {
    "upper": UPPER, "add": A("add", {"a": "p", "b": "q"}, {"y": "r"}), "scale": A("scale", {"x": "p"}, {"y": "r"}),
    "scale by": A("scale", {"x": "p", "by": "q"}, {"y": "r"}), "pick": A("pick", {}, {"y": "r"}),
    "pick the second": A("pick", {"second": "p"}, {"y": "r"}),
    "constant": A("constant", {}, {"y": "r"}), "no outputs": A("constant"), "raw": A("raw", {"x": "p"}, {"y": "r"}),
    "either": A("either", {"x": "p"}, {"y": "r"}), "named": A("named", {"x": "p", "k": "q"}, {"y": "r"}),
    "several": A("several", [("a", "p"), ("b", "q")], {"y": "r"}), "unknown": A("uper", {"x": "p"}, {"y": "r"}),
    "no name": A("", {}, {}),
    "an unknown input": A("upper", {"z": "p"}, {"y": "r"}),
    "an input twice": A("upper", [("x", "p"), ("x", "q")], {"y": "r"}),
    "a missing input": A("add", {"a": "p"}, {"y": "r"}), "two outputs": A("upper", {"x": "p"}, {"y": "r", "z": "s"}),
    "an output twice": A("upper", {"x": "p"}, [("y", "r"), ("y", "s")]),
    "its input": A("upper", {"x": "p"}, {"y": "p"}),
    "no id": A("upper", {"x": ""}, {"y": "r"}), "an output without an id": A("upper", {"x": "p"}, {"y": ""}),
    "a target": A("upper", {"x": "p"}, {"y": "r"}, target="here"),
    "an unknown target": A("upper", {"x": "p"}, {"y": "r"}, target="there"),
    "an alias": A("loud", {"text": "p"}, {"y": "r"}),
    "configs": A("upper", {"x": "p"}, {"y": "r"}, configs=[struct(k=1), wrappers_pb2.Int64Value(value=3)]),
    "a long name": A("x" * 2000),
}  # fmt: skip

_ERRORS = [
    UnsupportedMediaType("image/png"), DecodeError("no UTF-8"), FunctionError("ValueError: x"), EncodeError("nan"),
    LimitExceeded("x"),
    NotAcceptable("output 0"), ShuttingDown("x"), StatusError(Status.ALREADY_EXISTS, "my words"),
    DeadlineExceeded("x"), InternalError("x"),
    Cancelled("x"), Overloaded("x"), ProtocolViolation("x"),
]  # fmt: skip


def scenarios() -> dict[str, Scenario]:
    """By leaves, by actions, by error; then streams, extensions and limits."""
    made: dict[str, Scenario] = {}
    for turn, (name, acts) in enumerate(_LEAVES.items()):
        made[f"leaf: {name}"] = played([upper], [[UPPER], *acts, HALF_CLOSE])
        made[f"leaf, then the action: {name}"] = played([relay], [*acts, [RELAY], HALF_CLOSE], models=_ECHOES)
        if turn % 3 == 0:
            made[f"leaf, unread: {name}"] = played([upper], [*acts, HALF_CLOSE])
    for mode in ("identical", "ignore"):
        for name in ("metadata later", "the same metadata later", "no metadata"):
            made[f"leaf with {mode}: {name}"] = played([upper], [[UPPER], *_LEAVES[name], HALF_CLOSE], metadata=mode)
    given = [[F("p", 0, "3")], [F("q", 0, "4", type="application/json")], HALF_CLOSE]
    for name, action in _ACTIONS.items():
        settings = {"actions": {"loud": "upper"}, "inputs": {"text": "x"}, "targets": ("here",)}
        made[f"action: {name}"] = played(_ALL, [[action], *given], **settings)
    for turn, error in enumerate(_ERRORS):
        for extensions in ("", "partial-failures"):
            acts = [
                [TICKS, RELAY, A("relay", {"x": "r"}, {"y": "s"})][:: 2 if extensions else 1],
                emit("a1", "a"),
                finish("a1", error),
                HALF_CLOSE,
            ]
            made[f"ends with {turn} {error.status.name} {extensions}"] = played(
                [ticks, relay], acts, extensions=extensions
            )
    return made | _streams() | _extended() | _limits() | _orders()


def _streams() -> dict[str, Scenario]:
    p, q = F("p", 0, "x", more=True), F("q", 0, "y", more=True)
    scripted: dict[str, tuple[Any, list[Any]]] = {
        "relay": (relay, [[RELAY, p], emit("a1", "a"), emit("a1", "b"), [F("p", 1, "z")], finish("a1")]),
        "split": (split, [[SPLIT, p], emit("a1", "a", 0), emit("a1", "b", 1), OutputEnded("a1", 0), emit("a1",
            "c", 1), finish("a1")]),
        "one of two outputs": (split, [[A("split", {"x": "p"}, {"right": "r"})], emit("a1", "a", 0), emit("a1",
            "b", 1), finish("a1")]),
        "join": (join, [[A("join", {"x": "p", "y": "q"}, {"y": "r"}), p, q], emit("a1", "a"), HALF_CLOSE]),
        "topk": (topk, [[A("topk", {"x": "p", "k": "q"}, {"y": "r"}), p, F("q", 0, "3")], finish("a1")]),
        "sink": (sink, [[A("sink", {"x": "p"}), p], finish("a1")]),
        "sink with an output": (sink, [[A("sink", {"x": "p"}, {"y": "r"}), p], finish("a1")]),
        "rows": (rows, [[A("rows", {}, {"y": "r"})], emit("a1", {"k": 1}), emit("a1", "text"), emit("a1",
            b"\x00"), finish("a1")]),
        "objects": (objects, [[A("objects", {"x": "p"}, {"y": "r"}), F("p", 0, '{"a":1}', type="application/json")],
            finish("a1")]),
        "messages": (messages, [[A("messages", {"x": "p"}, {"y": "r"}), K("p", 0, "a", "b"), F("a", 0, "1",
            role="user"), F("b", 0, "2", type="a/b")], emit("a1", Message(b"x", {"role": "m"}, "a/b")),
            finish("a1")]),
        "blobs": (blobs, [[A("blobs", {"x": "p"}, {"y": "r"}), p], emit("a1", b"x" * 10), finish("a1")]),
        "loose": (loose, [[A("loose", {"x": "p"}, {"y": "r"}), p], emit("a1", "x"), finish("a1")]),
        "total": (total, [[A("total", {"x": "p"}, {"y": "r"}), p], emit("a1", 3), finish("a1")]),
        "total twice": (total, [[A("total", {"x": "p"}, {"y": "r"}), p], emit("a1", 3), emit("a1", 4),
            finish("a1")]),
        "tagged": (tagged, [[A("tagged", {"x": "p"}, {"a": "r", "b": "s"}), p], emit("a1", "x", 1), finish("a1")]),
        "text, then another type": (ticks, [[TICKS], emit("a1", "a"), emit("a1", {}), emit("a1", "b")]),
        "unknown events": (ticks, [[TICKS], emit("a9", "x"), Finished("a9"), emit("a1", "x", 7), OutputEnded("a1",
            0)]),
        "an action of an output": (ticks, [[TICKS], emit("a1", "a"), [F("r", 7, "x")]]),
        "an output that is there": (ticks, [[F("r", 0, "x")], [TICKS]]),
        "an output in one message": (ticks, [[TICKS, F("r", 0, "x")]]),
        "an output again": (ticks, [[TICKS], emit("a1", "x"), finish("a1"), [TICKS]]),
        "a node of an output": (rows, [[A("rows", {}, {"y": "r"})], emit("a1", {}), [K("q", 0, "r")],
            finish("a1")]),
    }  # fmt: skip
    made: dict[str, Scenario] = {}
    for name, (function, acts) in scripted.items():
        made[f"stream: {name}"] = played([function], [*acts, HALF_CLOSE])
        made[f"stream, half-closed early: {name}"] = played([function], [*acts[:1], HALF_CLOSE, *acts[1:]])
    parts = [TICKS, A("relay", {"x": "r"}, {"y": "r2"})]
    for number, order in enumerate(permutations(parts)):
        key = "a1" if number == 0 else "a2"
        acts = [*([one] for one in order), emit(key, "a"), emit(key, "b"), finish(key), HALF_CLOSE]
        made[f"stream: chain {number}"] = played([ticks, relay], acts, models=_ECHOES)
    for changes in ({"retain": False}, {"sequence": True}):
        acts = [
            [TICKS, A("relay", {"x": "r"}, {"y": "s"})],
            emit("a1", "a"),
            emit("a1", "b"),
            finish("a1"),
            [A("relay", {"x": "r"}, {"y": "t"})],
            HALF_CLOSE,
        ]
        made[f"stream: outputs with {changes}"] = played([spec_of(ticks, **changes), relay], acts, models=_ECHOES)
    long = [[TICKS], emit("a1", "x" * 25), emit("a1", "y" * 20), emit("a1", ""), finish("a1"), HALF_CLOSE]
    made["stream: cut into fragments"] = played([ticks], long, fragment_bytes=10)
    return made


def _extended() -> dict[str, Scenario]:
    every = "drop, ttl, partial-failures, cancel, accept, discovery, nonsense"
    hi, both = F("p", 0, "hi"), [SPLIT]
    courses: dict[str, tuple[list[Any], list[Any]]] = {
        "drop": ([upper], [[hi, UPPER], [drop("p")], [A("upper", {"x": "p"}, {"y": "r3"})]]),
        "drop, then a fragment": ([upper], [[F("p", 0, "x", more=True), drop("p")], [F("p", 1, "b")], [drop("p"),
            drop("q")]]),
        "drop a child": ([upper], [[K("p", 0, "a", "b"), F("a", 0, "x"), F("b", 0, "y"), drop("b")], [UPPER]]),
        "drop what is read": ([relay], [[RELAY, F("p", 0, "x", more=True)], [drop("p")]]),
        "drop an output": ([split], [both, emit("a1", "a", 0), [drop("r1")], emit("a1", "late", 0), emit("a1",
            "c", 1), finish("a1")]),
        "drop a finished output": ([ticks], [[TICKS], emit("a1", "a"), finish("a1"), [drop("r")], [drop("r")]]),
        "drop with outputs": ([upper], [[hi, A("DROP", {"node": "p"}, {"y": "r"})]]),
        "drop nothing": ([upper], [[A("DROP")]]),
        "drop by another name": ([upper], [[A("DROP", {"nodes": "p"})]]),
        "cancel": ([split], [both, emit("a1", "a", 0), [cancel("r2")], [cancel("r2")]]),
        "cancel what is finished": ([upper], [[hi, UPPER], [cancel("r"), cancel("p"), cancel("nobody")]]),
        "cancel what waits": ([ticks], [[TICKS, A("ticks", {}, {"y": "r2", "__status__": "s"})], [cancel("r2")],
            finish("a1")]),
        "cancel what is read": ([ticks, relay], [[TICKS, A("relay", {"x": "r"}, {"y": "s"})], emit("a1", "a"),
            [cancel("r")], finish("a2")]),
        "a status": ([ticks], [[A("ticks", {}, {"y": "r", "__status__": "s"})], emit("a1", "a"), finish("a1")]),
        "a failed status": ([ticks], [[A("ticks", {}, {"y": "r", "__status__": "s"})], finish("a1",
            FunctionError("boom"))]),
        "a status that is read": ([ticks, relay], [[A("ticks", {}, {"y": "r", "__status__": "s"}), A("relay",
            {"x": "s"}, {"y": "t"})], finish("a1", FunctionError("no"))]),
        "an unknown action": ([ticks], [[A("nobody", {}, {"y": "r", "__status__": "s"})], [TICKS]]),
        "a wrong input": ([ticks], [[A("ticks", {"z": "p"}, {"y": "r0", "__status__": "s"})]]),
        "accept": ([split], [[A("split", {"x": "p"}, {"left": "r1", "right": "r2"},
            configs=[struct(accept={"right": "text/*;q=0.5"})])], finish("a1")]),
        "accept the only one": ([upper], [[A("upper", {"x": "p"}, {"answer": "r"},
            configs=[struct(accept={"answer": "text/html"})]), hi]]),
        "a wrong accept": ([upper], [[A("upper", {"x": "p"}, {"y": "r"}, configs=[struct(accept=["text/plain"])])]]),
        "discovery": ([upper, add], [[A("LIST", {}, {"y": "l"}), A("LIST_ACTIONS", {}, {"actions": "m"}),
            A("DISCOVER", {}, {"y": "n"})]]),
        "ttl": ([upper], [[hi, ttl("p", 5)], 4.9, 0.1, [UPPER]]),
        "ttl moved": ([upper], [[hi, ttl("p", 5)], 3, [ttl("p", 5)], 3, 2, [UPPER]]),
        "ttl of an output": ([ticks], [[TICKS], [ttl("r", 1)], 1, emit("a1", "a"), finish("a1")]),
        "ttl of what is unknown": ([upper], [[ttl("p", 5)], 5, [hi]]),
        "ttl of nothing": ([upper], [[hi, ttl("p", 0)], [UPPER]]),
        "ttl below zero": ([upper], [[hi, ttl("p", -1)]]),
        "ttl without a time": ([upper], [[hi, A("SET_TTL", {"node": "p"})]]),
        "two ttls": ([upper], [[hi, F("q", 0, "x"), ttl("p", 5), ttl("q", 2)], 2, 3]),
    }  # fmt: skip
    made: dict[str, Scenario] = {}
    for name, (offered, acts) in courses.items():
        limit = {"actions_running": 1} if "waits" in name else {}
        for extensions in (every, "", "drop, cancel"):
            made[f"with {extensions or 'none'}: {name}"] = played(
                offered, [*acts, HALF_CLOSE], extensions=extensions, **limit
            )
    return made


def _limits() -> dict[str, Scenario]:
    big = [F(one, 0, "x" * 900) for one in "abcd"]
    window = [[RELAY], *([F("p", seq, str(seq), more=True)] for seq in range(6))]
    four = [wants("a1")] * 4
    waiting = [[A("ticks", {}, {"y": f"r{number}"})] for number in range(4)]
    return {
        "session_bytes": played([upper], [[*big[:3]], [big[3]]], session_bytes=3000),
        "nodes": played([upper], [[*big[:3]], [big[3]]], nodes=3),
        "empty fragments": played([upper], [[F("p", seq, more=True) for seq in range(1, 1000)]],
            session_bytes=10_000),
        "depth": played([upper], [[UPPER, K("p", 0, "a"), K("a", 0, "b")], [F("b", 0, "x")]], depth=2),
        "depth, just": played([upper], [[UPPER, K("p", 0, "a")], [F("a", 0, "x")]], depth=2),
        "leaves": played([upper], [[UPPER, K("p", 0, "a", "b", "c")], [F("a", 0, "x"), F("b", 0, "y"), F("c", 0,
            "z")]], leaves=2),
        "names": played([upper], [[F("12345", 0, "x")]], name_bytes=4),
        "names, just": played([upper], [[F("1234", 0, "x")]], name_bytes=4),
        "references": played([upper], [[UPPER, F("p", 0, ref="data:,four")]], reference_bytes=3),
        "references of the session": played([raw],
            [[A("raw", {"x": "p"}, {"y": "r"}), F("p", 0, ref=HTTP)], fetched(b"x" * 4000, last=False)],
            session_bytes=3000),
        "actions at once": played([ticks], [*waiting, finish("a1"), finish("a2"), finish("a3"), finish("a4"),
            HALF_CLOSE], actions_running=2),
        "actions that wait": played([ticks], waiting, actions_running=1, actions_waiting=2),
        "a window of 2": played([relay], [*window, *four, HALF_CLOSE, wants("a1", waits=True)], window=2),
        "a window of 1": played([blobs], [[A("blobs", {"x": "p"}, {"y": "r"})], *window[1:], *four], window=1),
        "a window and a model": played([relay], [*window, [F("p", 6, "end")], HALF_CLOSE], models=_ECHOES, window=2),
        "what never comes": played([join], [[A("join", {"x": "p", "y": "q"}, {"y": "r"}), F("p", 0, "x")],
            HALF_CLOSE], models={"join": idle}),
        "a source": played([ticks], [[TICKS], HALF_CLOSE], models={"ticks": source("a", "b")}),
        "a source that fails": played([ticks], [[TICKS], HALF_CLOSE],
            models={"ticks": source("a", FunctionError("boom"))}),
        "outputs are nodes": played([rows], [[A("rows", {}, {"y": "r"})]], models={"rows": source({}, {}, {})},
            nodes=3),
        "retained outputs": played([ticks], [[TICKS], emit("a1", "x" * 2000), emit("a1", "x" * 2000)],
            session_bytes=3000),
        "nothing": played([], [HALF_CLOSE, HALF_CLOSE, b"\xff", [F("p", 0, "x")]]),
    }  # fmt: skip


def _orders() -> dict[str, Scenario]:
    """Twenty nodes and five actions in several orders."""
    parts: list[Any] = [K("p", 0, *(f"n{n}" for n in range(4)), more=True), K("p", 1, "m0", "m1"), UPPER]
    for number in range(4):
        parts += [F(f"n{number}", 0, f"{number}", more=True), F(f"n{number}", 1, ";")]
    parts += [K(f"m{n}", 0, f"r{n}", "n0") for n in range(2)]
    parts += [A("upper", {"x": f"n{n}"}, {"y": f"r{n}"}) for n in range(2)]
    made: dict[str, Scenario] = {}
    for seed in range(4):
        shuffled = list(parts)
        random.Random(seed).shuffle(shuffled)
        made[f"order {seed}"] = played([upper], [*([one] for one in shuffled), HALF_CLOSE])
    made["order of one message"] = played([upper], [parts, HALF_CLOSE])
    return made
