"""What a client and an operator read of a session: the words of statuses, errors and of the log."""

from __future__ import annotations

import logging

from google.protobuf import any_pb2
from google.rpc import status_pb2

from invoker.errors import DecodeError, Status
from invoker.errors.wording import Place
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import join, ticks, upper
from tests.protocols.evergreen.notation import A, F

CONFIG = any_pb2.Any(type_url="type.googleapis.com/google.protobuf.Empty")


def test_E088_configs_that_nobody_takes_are_told_to_the_operator_once_an_action(caplog):
    """The action's name, its number and how many there were; nothing of what they hold."""
    caplog.set_level(logging.DEBUG)
    action = A("upper", {"x": "p"}, {"y": "r"})
    action.configs.extend([CONFIG, CONFIG])
    c = Conversation(upper).send(action, F("p", 0, "x"))
    assert [record.getMessage() for record in caplog.records if "config" in record.getMessage()] == [
        "action 'upper' #1: the function takes no Context, so 2 config(s) are ignored"
    ]
    assert c.texts("r") == ["X"]


def test_E121_the_status_of_a_cancelled_action_says_who_cancelled_it():
    """CANCELLED, by the client."""
    c = Conversation(ticks, extensions="partial-failures, cancel")
    c.send(A("ticks", {}, {"y": "r", "__status__": "s"})).emit("a1", "x").send(A("CANCEL", {"output": "r"}))
    (leaf,) = c.sent.flatten("s")
    told = status_pb2.Status.FromString(leaf.data)
    assert (Status(told.code), told.message) == (
        Status.CANCELLED,
        "Evergreen: Action Cancelled: action 'ticks' #1: the client cancelled the action",
    )


def test_E090_a_payload_that_cannot_be_read_is_told_with_the_name_of_its_input():
    """The client knows names, not numbers."""
    c = Conversation(join).send(A("join", {"x": "p", "y": "q"}, {"out": "r"}), F("q", 0, b"\xff"))
    c.finish("a1", DecodeError(": no text", place=Place("input", 1, "q"))).fails(
        "BAD", "action 'join' #1: input 'y': no text"
    )
