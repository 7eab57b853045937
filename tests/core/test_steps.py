"""The vocabulary."""

import pytest

from invoker.core import steps
from invoker.core.steps import Emitted, EndInput, Feed, Open, Send
from invoker.message import Message


def test_steps_are_values():
    """Equal content is equal, and nothing can be changed after the fact."""
    assert Feed("a", 0, Message(b"1")) == Feed("a", 0, Message(b"1"))
    assert EndInput("a").index == steps.ALL
    with pytest.raises(AttributeError):
        Open("a").id = "b"
    with pytest.raises(AttributeError):
        Send(b"").frame = b"x"
    with pytest.raises(AttributeError):
        Emitted("a", 0, Message(b"")).index = 1


def test_the_vocabulary_has_twenty_one_words():
    """A new word needs an ADR: 8 for sessions that store, 19 for those that share, 35 for `Await`."""
    groups = ("ALL", "CallStep", "Event", "Step", "Terms", "Trailers")
    words = {name for name in steps.__all__ if name not in groups}
    storing = {"CloseOutput", "OutputEnded", "Wants", "Fetch", "Fetched", "Timer", "Elapsed"}
    sharing = {"Join", "Ask", "Answered", "Await", "Subscribe", "StoreChanged"}
    assert words - storing - sharing == {"Open", "Feed", "EndInput", "Cancel", "Emitted", "Finished", "Send", "Close"}
    assert storing | sharing < words
