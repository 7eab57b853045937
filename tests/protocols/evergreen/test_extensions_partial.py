"""The extension `partial-failures`: an action fails alone, and tells of it (E-121, E-128; ET-89)."""

from __future__ import annotations

import pytest
from google.rpc import status_pb2

from invoker.core.steps import OutputEnded
from invoker.errors import DecodeError, EncodeError, FunctionError, LimitExceeded, NotAcceptable, Status
from invoker.message import Message
from tests.protocols.evergreen.conversation import Conversation, spec_of
from tests.protocols.evergreen.functions import join, relay, rows, split, ticks, upper
from tests.protocols.evergreen.models import each, source
from tests.protocols.evergreen.notation import A, F, K

TICKS = A("ticks", {}, {"y": "r", "__status__": "s"})
READER = A("relay", {"x": "r"}, {"y": "r2", "__status__": "s2"})


def partial(*functions, more="", **rest):
    rest.setdefault("models", {"relay": each(str.upper)})
    return Conversation(*functions, extensions=f"partial-failures{more}", **rest)


def status(c, node="s"):
    """What a status node says; and that it is one leaf of the right type."""
    (leaf,) = c.sent.flatten(node)
    assert leaf.media_type == "application/x-protobuf; type=google.rpc.Status"
    assert len(c.sent.of(node)) == 1
    made = status_pb2.Status.FromString(leaf.data)
    return Status(made.code), made.message


def test_E128_success_is_told_as_code_0():
    """After the outputs, in a leaf that the client asked for (E-121)."""
    c = partial(ticks).send(TICKS).emit("a1", "a").finish("a1")
    assert status(c) == (Status.OK, "")
    assert c.sent.ids == ["r", "s"]
    assert c.half_close().is_ok


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (
            FunctionError("ValueError: why"),
            Status.UNKNOWN,
            "Evergreen: Action Failed: action 'ticks' #1: ValueError: why",
        ),
        (DecodeError("what"), Status.INVALID_ARGUMENT, "Evergreen: Bad Input: action 'ticks' #1: what"),
        (NotAcceptable("none"), Status.INVALID_ARGUMENT, "Evergreen: Not Acceptable: action 'ticks' #1: none"),
    ],
)
def test_E121_a_failure_does_not_abort(error, code, text):
    """Its unfinished outputs get a terminator, and its status says why."""
    c = partial(ticks).send(TICKS).emit("a1", "a").finish("a1", error)
    assert c.sent.shape("r") == [(0, b"a", True), (1, b"", False)]
    assert status(c) == (code, text)
    assert c.half_close().is_ok


def test_E121_a_failure_needs_no_status_node():
    """It is contained all the same."""
    c = partial(ticks).send(A("ticks", {}, {"y": "r"})).finish("a1", FunctionError("no"))
    assert c.sent.shape("r") == [(0, None, False)]
    assert c.half_close().is_ok


def test_E121_a_status_node_alone_is_no_output_of_the_function():
    """Its outputs are unwanted then."""
    c = partial(ticks).send(A("ticks", {}, {"__status__": "s"}))
    assert c.invocations["a1"].open.unwanted == (0,)
    c.finish("a1")
    assert status(c) == (Status.OK, "")


def test_E121_other_actions_go_on():
    """They are not cancelled."""
    c = partial(ticks).send(TICKS, A("ticks", {}, {"y": "r2"})).finish("a1", FunctionError("no"))
    c.emit("a2", "still here").finish("a2")
    assert c.texts("r2") == ["still here"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_E121_a_reader_of_a_failed_output_fails(when):
    """With FAILED_PRECONDITION, whether it was there before or comes later."""
    c = partial(ticks, relay).send(TICKS)
    if when == "before":
        c.send(READER)
    c.emit("a1", "a").finish("a1", FunctionError("no"))
    if when == "after":
        c.send(READER)
    code, text = status(c, "s2")
    assert code is Status.FAILED_PRECONDITION
    assert "node 'r' is an output of action 'ticks' #1, which failed with UNKNOWN" in text
    assert c.half_close().is_ok


def test_E121_a_failure_is_handed_on_along_a_chain():
    """Each reader fails for the one before it, also below an interior node."""
    c = partial(ticks, relay).send(TICKS, READER, K("p", 0, "r2")).send(A("relay", {"x": "p"}, {"__status__": "s3"}))
    c.finish("a1", FunctionError("no"))
    assert [status(c, node)[0] for node in ("s", "s2", "s3")] == [
        Status.UNKNOWN, Status.FAILED_PRECONDITION, Status.FAILED_PRECONDITION,
    ]  # fmt: skip
    assert "node 'r2' is an output of action 'relay' #2" in status(c, "s3")[1]


def test_E121_an_output_that_was_whole_before_the_failure_can_be_read():
    """Only unfinished ones have failed."""
    c = partial(split, relay).send(A("split", {"x": "p"}, {"left": "r", "right": "r3"})).emit("a1", "L", 0)
    c.tell(OutputEnded("a1", 0)).finish("a1", FunctionError("no"))
    assert c.send(READER).texts("r2") == ["L"]


def test_E121_a_status_may_be_read_by_another_action():
    """It is a leaf as any other."""
    c = partial(ticks, upper).send(TICKS, A("upper", {"x": "s"}, {"y": "r2"})).finish("a1")
    assert c.invocations["a2"].fed[0][0].media_type == "application/x-protobuf; type=google.rpc.Status"


def test_E121_a_function_that_ignores_a_failed_input_does_not_fail():
    """Unread, nothing else happens."""
    c = partial(ticks, join, models={"join": source("fine")}).send(TICKS)
    c.send(A("join", {"x": "q", "y": "r"}, {"out": "r2", "__status__": "s2"}))
    assert status(c, "s2") == (Status.OK, "")


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (F("p", -1), "FRAG"),
        (K("p", 0, "p"), "GRAPH"),
        (A("ticks", {"no": "p"}), "ACT"),
        (A("nobody"), "ANF"),
        (A("ticks", {}, {"y": "r"}), "ACT"),
        (F("p", 0, "x" * 5000), "LIM"),
    ],
)
def test_E121_mistakes_of_the_protocol_still_abort(part, kind):
    """And limits (ET-89)."""
    partial(ticks, session_bytes=2000).send(TICKS).send(part).fails(kind)


def test_E121_limits_of_reading_and_writing_still_abort():
    """Leaves of an input, and bytes of an output."""
    leaves = [K("p", 0, *"abc"), *(F(name, 0, name) for name in "abc")]
    partial(relay, leaves=2).send(A("relay", {"x": "p"}, {"y": "r"}), *leaves).fails("LIM", "2 leaves")
    partial(ticks, session_bytes=1000).send(TICKS).emit("a1", "x" * 2000).fails("LIM")
    partial(ticks).send(TICKS).finish("a1", LimitExceeded("too much")).fails("LIM", "too much")


def test_E121_what_an_input_does_to_its_action_is_contained():
    """A reference that is refused, two values for one parameter, an output that cannot be read."""

    def two(a: str, b: str) -> str:
        return a + b

    c = partial(two, relay, spec_of(ticks, retain=False))
    c.send(F("p", 0, ref="ftp://x"), A("relay", {"x": "p"}, {"__status__": "s1"}))
    c.send(K("q", 0, "a", "a"), F("a", 0, "x"), A("two", {"a": "q", "b": "a"}, {"__status__": "s2"}))
    c.send(A("ticks", {}, {"y": "t"}), A("relay", {"x": "t"}, {"__status__": "s3"}))
    codes = [status(c, node)[0] for node in ("s1", "s2", "s3")]
    assert codes == [Status.PERMISSION_DENIED, Status.INVALID_ARGUMENT, Status.FAILED_PRECONDITION]
    assert c.is_open


def test_E121_results_of_a_mapped_function_before_its_failure_are_an_unfinished_list():
    """Not one whole leaf that looks like success."""

    def fussy(x: str) -> str:
        if x == "bad":
            raise ValueError(x)
        return x

    c = partial(fussy).send(A("fussy", {"x": "p"}, {"y": "r", "__status__": "s"}), K("p", 0, "a", "b"))
    c.send(F("a", 0, "ok"), F("b", 0, "bad"))
    assert [more for _, _, more in c.sent.shape("r")] == [True, False]
    assert c.texts("r") == ["ok"]
    assert status(c)[0] is Status.UNKNOWN


def test_E121_an_item_that_cannot_be_sent_is_not_named():
    """The output is complete without it."""
    c = partial(rows).send(A("rows", {}, {"y": "r", "__status__": "s"})).emit("a1", {"k": 1})
    c.emit("a1", Message(b"{}", {"capture-time": "never"}, "application/json"))
    assert c.texts("r") == ['{"k": 1}']
    assert status(c)[0] is Status.UNKNOWN


def test_E121_a_status_stands_for_itself_only_if_negotiated():
    """Else it is a name as any other."""
    c = Conversation(ticks).send(A("ticks", {}, {"__status__": "r"})).emit("a1", "x").finish("a1")
    assert c.texts("r") == ["x"]
    Conversation(split).send(A("split", {"x": "p"}, {"__status__": "s"})).fails("ACT", "no output '__status__'")


@pytest.mark.parametrize(
    "action",
    [
        A("relay", {"x": "p"}, [("__status__", "s"), ("__status__", "s2")]),
        A("relay", {"x": "p"}, {"__status__": ""}),
        A("relay", {"x": "p"}, {"__status__": "taken"}),
        A("relay", {"x": "p"}, {"y": "s", "__status__": "s"}),
        A("relay", {"x": "s"}, {"y": "r", "__status__": "s"}),
    ],
    ids=["twice", "empty", "in use", "an output too", "its own input"],
)
def test_E081_a_status_node_must_be_new(action):
    """As any output."""
    partial(relay).send(F("taken", 0, "x")).send(action).fails("ACT", "action 'relay' #1")


def test_E122_a_cancelled_action_says_so_in_its_status():
    """Its readers fail, as those of a failed one (ET-90)."""
    c = partial(ticks, relay, more=", cancel").send(TICKS, READER).emit("a1", "a")
    c.send(A("CANCEL", {"output": "s"}))
    assert status(c)[0] is Status.CANCELLED
    assert status(c, "s2")[0] is Status.FAILED_PRECONDITION
    assert c.sent.shape("r") == [(0, b"a", True), (1, b"", False)]
    assert c.half_close().is_ok


def test_E121_values_of_another_kind_fail_the_action_alone():
    """The machinery is told to end it."""
    c = partial(ticks).send(TICKS).emit("a1", "a").emit("a1", {"k": 1})
    assert isinstance(c.invocations["a1"].cancelled, EncodeError)
    assert status(c)[0] is Status.UNKNOWN
    assert c.texts("r") == ["a"]


def test_E121_a_dropped_output_of_a_failed_action_is_not_ended():
    """Nothing of it is sent any more."""
    c = partial(ticks, more=", drop").send(TICKS).emit("a1", "a").send(A("DROP", {"node": "r"}))
    c.finish("a1", FunctionError("no"))
    assert c.sent.shape("r") == [(0, b"a", True)]
    assert status(c)[0] is Status.UNKNOWN


def test_E119_a_dropped_status_is_not_sent():
    """It is an output as any other."""
    c = partial(ticks, more=", drop").send(TICKS, A("DROP", {"node": "s"})).emit("a1", "a").finish("a1")
    assert c.texts("r") == ["a"]
    assert c.sent.of("s") == []


def test_E121_waiting_actions_start_after_a_failure():
    """A turn is free again."""
    c = partial(ticks, actions_running=1).send(TICKS, A("ticks", {}, {"y": "r2"})).finish("a1", FunctionError("no"))
    assert list(c.invocations) == ["a1", "a2"]
