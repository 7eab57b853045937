"""`References`: leaves whose bytes lie elsewhere (E-042, E-050 to E-059)."""

from __future__ import annotations

import pytest

from invoker.core.steps import Fetch, Fetched
from invoker.errors import DecodeError, LimitExceeded, Status
from invoker.fetch.errors import ReferenceFailed, ReferenceRefused
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import blobs, either, raw, relay, upper
from tests.protocols.evergreen.models import each
from tests.protocols.evergreen.notation import A, F, K

UPPER = A("upper", {"x": "p"}, {"y": "r"})
BLOBS = A("blobs", {"x": "p"}, {"y": "r"})
HTTP = "https://example.org/x"


@pytest.mark.parametrize(
    "uri", ["data:,hi%20you", "data:;base64,aGkgeW91", "DATA:text/html,hi you".replace(" ", "%20")]
)
def test_E052_data_uris_are_resolved_at_once(uri):
    """In either form, without the driver."""
    c = Conversation(upper).send(UPPER, F("p", 0, ref=uri)).half_close()
    assert c.is_ok
    assert (c.texts("r"), c.fetches) == (["HI YOU"], [])


def test_E051_the_type_of_the_node_wins():
    """The type inside a data: URI is ignored."""
    c = Conversation(upper).send(UPPER, F("p", 0, ref="data:image/png,hi", type="text/markdown"))
    assert c.invocations["a1"].fed[0][0].media_type == "text/markdown"


def test_E052_malformed_data_uris_are_bad_input():
    """The text names the node."""
    Conversation(upper).send(UPPER, F("p", 0, ref="data:;base64,%%")).fails("BAD", "node 'p': a data: URI")


def test_E052_the_size_is_limited_after_decoding():
    """To what one reference may hold."""
    c = Conversation(upper, reference_bytes=3).send(
        UPPER, F("p", 0, ref="data:;base64,aGk="), F("q", 0, ref="data:,four")
    )
    assert c.texts("r") == ["HI"]
    c.send(A("upper", {"x": "q"}, {"y": "r2"})).fails("LIM", "node 'q': .*4 bytes, which exceeds the limit of 3")


@pytest.mark.parametrize("scheme", ["ftp", "gs", "javascript", "blob", "x-own", "s3"])
def test_E050_other_schemes_are_refused_by_name(scheme):
    """The set is ours to define."""
    Conversation(upper).send(UPPER, F("p", 0, ref=f"{scheme}://x/y")).fails("REFD", f"node 'p': the scheme '{scheme}'")


@pytest.mark.parametrize("uri", ["", "notes.txt", "/etc/passwd", "../x", "//host/x", "1ab:x"])
def test_E058_relative_references_are_refused(uri):
    """There is nothing that they could be relative to; no path of the server is told."""
    error = Conversation(upper).send(UPPER, F("p", 0, ref=uri)).fails("REFD", "node 'p': ")
    assert "/work" not in str(error)


@pytest.mark.parametrize("scheme", ["file:///tmp/x", "http://example.org/x", HTTP, "HTTPS://EXAMPLE.ORG/x"])
def test_E053_what_may_be_allowed_is_left_to_the_driver(scheme):
    """It is asked once, with the limit of bytes; what it gets goes to the function."""
    c = Conversation(upper, reference_bytes=77).send(UPPER, F("p", 0, ref=scheme))
    assert c.fetches == [Fetch("r1", scheme, 77)]
    c.fetched(b"he", last=False).fetched(b"llo", last=False)
    assert c.sent.fragments == []
    c.fetched(b"")
    assert c.texts("r") == ["HELLO"]


def test_E056_unused_references_are_never_touched():
    """Whatever they say."""
    c = Conversation(upper).send(F("p", 0, ref=HTTP), F("q", 0, ref="nonsense://x"), F("w", 0, ref="data:broken"))
    assert c.half_close().is_ok
    assert c.fetches == []


def test_E056_an_action_that_has_not_come_to_a_reference_does_not_touch_it():
    """It stands behind a leaf that is not here."""
    c = Conversation(upper).send(UPPER, K("p", 0, "a", "b"), F("b", 0, ref=HTTP))
    assert c.fetches == []
    c.send(F("a", 0, "x"))
    assert len(c.fetches) == 1


@pytest.mark.parametrize("is_fetched_between", [True, False])
def test_E056_a_reference_is_resolved_once_for_all(is_fetched_between):
    """Two actions, before or after the bytes are here, are one access."""
    c = Conversation(upper).send(F("p", 0, ref=HTTP), UPPER)
    second = A("upper", {"x": "p"}, {"y": "r2"})
    if is_fetched_between:
        c.fetched(b"hi").send(second)
    else:
        c.send(second).fetched(b"hi")
    assert c.texts("r") == c.texts("r2") == ["HI"]
    assert sum(isinstance(step, Fetch) for step in c.steps) == 1


def test_E056_two_places_of_one_leaf_are_one_access():
    """The content is repeated, the access is not."""
    c = Conversation(upper).send(UPPER, K("p", 0, "a", "a"), F("a", 0, ref=HTTP)).fetched(b"hi")
    assert c.texts("r") == ["HI", "HI"]


def test_E056_equal_uris_of_two_nodes_are_two_references():
    """Each node is fetched with its own key."""
    c = Conversation(upper).send(UPPER, A("upper", {"x": "q"}, {"y": "r2"}), F("p", 0, ref=HTTP), F("q", 0, ref=HTTP))
    assert len({fetch.key for fetch in c.fetches}) == 2


def test_E056_what_was_resolved_counts_against_the_session():
    """data: and fetched bytes alike."""
    c = Conversation(raw, session_bytes=4000).send(A("raw", {"x": "p"}, {"y": "r"}), F("p", 0, ref=HTTP))
    before = c.session.graph.held
    c.fetched(b"x" * 1000, last=False)
    assert c.session.graph.held == before + 1000
    c.fetched(b"x" * 4000, last=False).fails("LIM", "node 'p': the session would hold")
    c = Conversation(raw, session_bytes=1000).send(A("raw", {"x": "p"}, {"y": "r"}))
    c.send(F("p", 0, ref="data:;base64," + "AAAA" * 200)).fails("LIM", "node 'p'")


def test_E042_references_and_data_are_joined_by_seq():
    """Any mix of both is one value."""
    parts = [
        F("p", 0, "a", more=True), F("p", 1, ref="data:,b", more=True), F("p", 2, ref=HTTP, more=True), F("p", 3, "d"),
    ]  # fmt: skip
    for order in (parts, parts[::-1]):
        c = Conversation(upper).send(UPPER).send_each(*order).fetched(b"c")
        assert c.texts("r") == ["ABCD"]


def test_E042_whole_leaves_fetch_one_reference_after_the_other():
    """Two references of one leaf."""
    c = Conversation(upper).send(UPPER, F("p", 0, ref=HTTP, more=True), F("p", 1, ref=HTTP + "2"))
    c.fetched(b"a").fetched(b"b")
    assert c.texts("r") == ["AB"]


def test_E095_a_reference_streams_piece_by_piece():
    """What the driver gets reaches the function before the rest is here."""
    c = Conversation(blobs, models={"blobs": each(str.encode)}).send(BLOBS, F("p", 0, "1", type="a/b", more=True))
    c.send(F("p", 1, ref=HTTP, more=True)).fetched(b"2", last=False)
    assert c.invocations["a1"].payloads() == [b"1", b"2"]
    c.fetched(b"3", last=False).send(F("p", 2, "5")).fetched(b"4")
    assert c.invocations["a1"].payloads() == [b"1", b"2", b"3", b"4", b"5"]
    assert c.half_close().is_ok


def test_E095_characters_stay_whole_across_pieces_of_a_reference():
    """Wherever the network cut them."""
    c = Conversation(relay, models={"relay": each(str)}).send(A("relay", {"x": "p"}, {"y": "r"}), F("p", 0, ref=HTTP))
    for byte in "日本".encode():
        c.fetched(bytes((byte,)), last=False)
    c.fetched()
    assert c.invocations["a1"].payloads() == ["日".encode(), "本".encode()]
    assert c.texts("r") == ["日本"]


def test_E095_an_empty_reference_is_an_empty_leaf():
    """One that ends without bytes."""
    c = Conversation(blobs, models={"blobs": each(str.encode)}).send(BLOBS, F("p", 0, ref=HTTP)).fetched()
    assert c.invocations["a1"].payloads() == [b""]


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (ReferenceRefused("no such host here"), "REFD", None),
        (ReferenceFailed("nothing there", is_missing=True), "REFX", None),
        (ReferenceFailed("no answer"), "REFX", Status.UNAVAILABLE),
        (LimitExceeded("too much"), "LIM", None),
        (DecodeError("odd"), "BAD", None),
    ],
)
def test_E057_a_failed_reference_aborts(error, kind, status):
    """With the status of why, and the node that it belongs to."""
    c = Conversation(upper).send(UPPER, F("p", 0, ref=HTTP)).fetched(error=error)
    c.fails(kind, f"node 'p': {error.detail}", status=status)


def test_E057_a_failure_in_the_middle_aborts():
    """What was there before does not make it whole."""
    c = Conversation(blobs).send(BLOBS, F("p", 0, ref=HTTP)).fetched(b"abc", last=False)
    c.fetched(error=ReferenceFailed("broken off")).fails("REFX", "node 'p': broken off", status=Status.UNAVAILABLE)


@pytest.mark.parametrize("function", [either, blobs])
def test_E056_errors_are_kept_for_later_readers(function):
    """A second action fails in the same way without a second access."""
    c = Conversation(either, blobs, extensions="partial-failures")
    c.send(A(function.__name__, {"x": "p"}, {"y": "r"}), F("p", 0, ref=HTTP)).fetched(error=ReferenceFailed("gone"))
    c.send(A(function.__name__, {"x": "p"}, {"y": "r2", "__status__": "s"}))
    assert c.is_open
    assert b"node 'p': gone" in c.sent.flatten("s")[0].data
    assert sum(isinstance(step, Fetch) for step in c.steps) == 1


def test_E056_malformed_references_are_kept_as_errors_too():
    """A broken data: URI is read once."""
    c = Conversation(upper, extensions="partial-failures").send(F("p", 0, ref="data:broken"), UPPER)
    c.send(A("upper", {"x": "p"}, {"y": "r2", "__status__": "s"}))
    assert b"Evergreen: Bad Input: node 'p'" in c.sent.flatten("s")[0].data


def test_E114_a_reference_on_its_way_is_not_hopeless():
    """After the half-close the session waits for the driver."""
    c = Conversation(upper).send(UPPER, F("p", 0, ref=HTTP)).half_close()
    assert c.is_open
    assert c.fetched(b"hi").is_ok
    assert c.texts("r") == ["HI"]


def test_bytes_for_a_key_that_is_unknown_are_ignored():
    """Also when the session is over."""
    c = Conversation(upper).send(UPPER, F("p", 0, ref=HTTP)).tell(Fetched("other", b"x", is_last=True))
    assert c.is_open
    c.fetched(b"hi").tell(Fetched("r1", b"late", is_last=True))
    assert c.texts("r") == ["HI"]


def test_E059_outputs_hold_data_only():
    """A leaf that came as a reference is sent as bytes."""
    c = Conversation(upper).send(UPPER, F("p", 0, ref="data:,hi"))
    assert all(one.chunk_fragment.WhichOneof("payload") == "data" for one in c.sent.of("r"))
