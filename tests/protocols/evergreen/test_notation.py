"""The reader of what sessions send: that it refuses what E-103 forbids, so that every scenario checks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.models import message_of, source
from tests.protocols.evergreen.notation import JSON, TEXT, A, F, K, M, Sent


def sent(*parts):
    made = Sent()
    for part in parts:
        made.take(M(part))
    return made


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([F("r", 1, "x")], "seq 1 after 0 fragments"),
        ([F("r", 0, "x", more=True), F("r", 2, "y")], "seq 2 after 1 fragments"),
        ([F("r", 0, "x", more=True), F("r", 0, "y")], "seq 0 after 1 fragments"),
        ([F("r", 0, "x"), F("r", 1, "y")], "a fragment after the final one"),
        ([F("r", 0, "x", type=None)], "metadata at seq 0"),
        ([F("r", 0, "x", more=True), F("r", 1, "y", type=TEXT)], "metadata at seq 1"),
        ([K("r", 0, "a", more=True), F("r", 1, "y")], "a chunk in an interior node"),
        ([A("upper")], "actions are never sent"),
    ],
)
def test_E103_what_a_session_may_not_send_is_refused(parts, why):
    """Seqs from 0 without gaps, metadata at seq 0 only, nothing after the final fragment, no actions (E-015)."""
    with pytest.raises(AssertionError, match=why):
        sent(*parts)


@pytest.mark.parametrize("mimetype", ["", "*/*", "text/*"])
def test_E104_a_type_that_is_not_concrete_is_refused(mimetype):
    """Clients could not decode it."""
    with pytest.raises(AssertionError):
        sent(F("r", 0, "x", mimetype=mimetype))


def test_leaves_are_read_depth_first():
    """Shared ones in each of their places; what is not complete is refused."""
    made = sent(K("r", 0, "a", "q", more=True), F("a", 0, "1"), K("q", 0, "b", "a"), F("b", 0, "2"), F("r", 1))
    assert made.texts("r") == ["1", "2", "1"]
    with pytest.raises(AssertionError, match="is not complete"):
        sent(K("r", 0, "a")).flatten("r")


VALUES = st.lists(st.text(max_size=12) | st.integers() | st.binary(max_size=12) | st.none(), max_size=6)


@given(VALUES, st.sampled_from(["texts", "values", "anything", "one"]), st.integers(1, 6))
def test_E103_no_output_breaks_the_rules_whatever_it_gives(values, name, size):
    """Any values, from functions of any kind, in fragments of any size; it may end in a failure."""

    def texts() -> Iterator[str]: ...
    def values_() -> Iterator[dict]: ...
    def anything() -> Iterator: ...
    def one() -> Iterator[int]: ...

    values_.__name__ = "values"
    models = {each: source(*values) for each in ("texts", "values", "anything", "one")}
    c = Conversation(texts, values_, anything, one, models=models, fragment_bytes=size)
    c.send(A(name, {}, {"y": "r"})).half_close()
    if c.is_ok:
        assert b"".join(leaf.data for leaf in c.sent.flatten("r")) == b"".join(
            message_of(one).payload for one in values
        )
        assert {leaf.media_type for leaf in c.sent.flatten("r")} <= {TEXT, JSON, "application/octet-stream"}
    else:
        c.fails("FAIL", "action ")
