"""`Writer`: the shapes of outputs on the wire and in the graph (E-096 to E-109). Each is read by `Sent` (E-103)."""

from __future__ import annotations

import pytest

from invoker import Context, Message, function
from invoker.author.reader import read
from invoker.author.spec import StreamSpec
from invoker.protocols.evergreen.writers import Form, form_of
from tests.protocols.evergreen.conversation import Conversation, spec_of
from tests.protocols.evergreen.functions import (
    blobs,
    constant,
    loose,
    messages,
    raw,
    relay,
    rows,
    scale,
    tagged,
    ticks,
    total,
    upper,
)
from tests.protocols.evergreen.models import Give, Take, each, source
from tests.protocols.evergreen.notation import JSON, OCTETS, TEXT, A, F, K

TICKS = A("ticks", {}, {"y": "r"})
ROWS = A("rows", {}, {"y": "r"})
UPPER = A("upper", {"x": "p"}, {"y": "r"})


def ran(function, *values, **settings):
    """A source that gave these values and ended."""
    name = getattr(function, "__name__", "") or function.name
    return Conversation(function, models={name: source(*values)}, **settings).send(A(name, {}, {"y": "r"}))


def test_E097_one_value_is_one_leaf_of_one_fragment():
    """Seq 0 with metadata, and not continued; its id is the action's (E-096)."""
    c = Conversation(upper).send(UPPER, F("p", 0, "hi"))
    assert c.sent.shape("r") == [(0, b"HI", False)]
    assert c.sent.flatten("r")[0].media_type == TEXT
    assert c.sent.ids == ["r"]


def test_E097_a_value_of_a_streaming_function_is_one_leaf():
    """What `total` returns when it has read all."""
    c = Conversation(total).send(A("total", {"x": "p"}, {"y": "r"}), F("p", 0, "x")).emit("a1", 7)
    assert c.sent.shape("r") == [(0, b"7", False)]
    assert c.finish("a1").sent.shape("r") == [(0, b"7", False)]


@pytest.mark.parametrize(
    ("size", "text", "parts"),
    [
        (10, "x" * 10, [10]),
        (10, "x" * 11, [10, 1]),
        (10, "x" * 30, [10, 10, 10]),
        (10, "日本語日", [9, 3]),
        (4, "a🙂b🙂", [1, 4, 1, 4]),
        (2, "日", [2, 1]),
    ],
)
def test_E097_a_large_text_is_split_between_characters(size, text, parts):
    """Metadata on seq 0 only; a character larger than a fragment is cut all the same."""
    c = Conversation(upper, fragment_bytes=size).send(UPPER, F("p", 0, text))
    assert [len(data) for _, data, _ in c.sent.shape("r")] == parts
    assert [more for _, _, more in c.sent.shape("r")] == [True] * (len(parts) - 1) + [False]
    assert c.texts("r") == [text.upper()]


def test_E097_large_bytes_are_split_anywhere():
    """The content is equal, and later actions read it whole."""
    data = bytes(range(256)) * 9
    c = Conversation(raw, fragment_bytes=100).send(A("raw", {"x": "p"}, {"y": "r"}), F("p", 0, data, type=OCTETS))
    assert len(c.sent.of("r")) == 24
    assert c.sent.flatten("r")[0].data == data[::-1]
    c.send(A("raw", {"x": "r"}, {"y": "r2"}))
    assert c.sent.flatten("r2")[0].data == data


def test_E097_an_item_of_a_stream_is_split_as_well():
    """Its leaf has fragments of its own."""
    c = ran(rows, {"k": "x" * 25}, fragment_bytes=10)
    (leaf,) = c.sent.flatten("r")
    assert leaf.data == b'{"k": "' + b"x" * 25 + b'"}'
    assert len(c.sent.of(c.sent.ids[1])) == 4


def test_E097_an_empty_value_is_an_empty_leaf():
    """With its metadata."""
    c = Conversation(upper).send(UPPER, F("p", 0, ""))
    assert c.sent.shape("r") == [(0, b"", False)]
    assert c.sent.flatten("r")[0].media_type == TEXT


def test_E098_a_stream_of_text_is_one_leaf_that_grows():
    """Item k is seq k, sent at once; then a fragment without metadata that only ends it (ET-54)."""
    c = Conversation(ticks).send(TICKS)
    for number, text in enumerate(("a", "", "c")):
        c.emit("a1", text)
        assert c.sent.shape("r")[number:] == [(number, text.encode(), True)]
    c.finish("a1")
    assert c.sent.shape("r") == [(0, b"a", True), (1, b"", True), (2, b"c", True), (3, b"", False)]
    assert c.texts("r") == ["ac"]


def test_E098_a_stream_of_bytes_is_one_leaf():
    """As text."""
    c = (
        Conversation(blobs)
        .send(A("blobs", {"x": "p"}, {"y": "r"}))
        .emit("a1", b"\x00")
        .emit("a1", b"\xff")
        .finish("a1")
    )
    assert [(leaf.media_type, leaf.data) for leaf in c.sent.flatten("r")] == [(OCTETS, b"\x00\xff")]


def test_E098_a_large_piece_is_split():
    """Each part has a seq of its own."""
    c = ran(ticks, "日" * 5, "b", fragment_bytes=7)
    assert [data.decode() for _, data, _ in c.sent.shape("r")] == ["日日", "日日", "日", "b", ""]


def test_E099_a_stream_of_other_values_is_a_node_with_items():
    """A child is named before its leaf comes; a terminator without children ends the root (ET-56)."""
    c = Conversation(rows).send(ROWS)
    ids = []
    for number in range(3):
        before = len(c.sent.fragments)
        c.emit("a1", {"k": number})
        root, leaf = c.sent.fragments[before:]
        assert (root.id, root.seq, root.continued, list(root.child_ids)) == ("r", number, True, [leaf.id])
        assert not leaf.continued
        ids.append(leaf.id)
    c.finish("a1")
    assert c.sent.shape("r")[3:] == [(3, None, False)]
    assert c.texts("r") == ['{"k": 0}', '{"k": 1}', '{"k": 2}']
    assert len(set(ids)) == 3


def test_E099_an_output_declared_as_a_sequence_has_items():
    """Each text is a leaf of its own."""
    c = ran(spec_of(ticks, sequence=True), "a", "b")
    assert c.texts("r") == ["a", "b"]


def test_E099_a_sequence_of_a_plain_function_has_items_too():
    """Also where there is only one value."""
    c = Conversation(spec_of(upper, sequence=True), models={"upper": each(str.upper)}).send(UPPER, F("p", 0, "hi"))
    assert c.texts("r") == ["HI"]
    assert [more for _, _, more in c.sent.shape("r")] == [True, False]


def test_E100_generated_ids_are_new_and_never_a_clients():
    """Unique in the session, random across sessions; a client that uses one later is refused (E-083)."""
    c, other = ran(rows, {}, {}, {}), ran(rows, {}, {}, {})
    ids = c.sent.ids[1:]
    assert len({*ids, *other.sent.ids[1:]}) == 6
    c.send(F(ids[0], 0, "x")).fails("FRAG", "only that action may write it")


def test_E100_an_id_that_a_client_has_guessed_is_passed_over():
    """The next one is taken."""
    c = Conversation(rows).send(ROWS).emit("a1", {})
    prefix = c.sent.ids[1].rpartition("-")[0]
    c.send(F(f"{prefix}-2", 0, "guessed")).emit("a1", {}).finish("a1")
    assert c.is_open
    assert f"{prefix}-2" not in c.sent.ids


def test_E100_ids_of_outputs_that_are_not_retained_are_not_the_clients_either():
    """They are not stored, but still in use."""
    c = Conversation(spec_of(rows, retain=False)).send(ROWS).emit("a1", {})
    c.send(F(c.sent.ids[1], 0, "x")).fails("FRAG", "node ")


@pytest.mark.parametrize("function", [ticks, rows])
def test_E101_an_empty_stream_is_one_terminator(function):
    """It flattens to nothing, also for an action that reads it (ET-57)."""
    c = ran(function)
    assert c.sent.shape("r") == [(0, None, False)]
    assert c.sent.flatten("r") == []


def test_E101_an_empty_stream_is_read_as_nothing():
    """By a later action of the session."""
    c = Conversation(ticks, upper, models={"ticks": source()}).send(TICKS, A("upper", {"x": "r"}, {"y": "r2"}))
    assert c.half_close().is_ok
    assert c.sent.shape("r2") == [(0, None, False)]


@pytest.mark.parametrize("second", [{"k": 1}, b"x", Message(b"<p>", media_type="text/html"), 1])
def test_E102_mixing_kinds_on_a_text_output_fails(second):
    """What was sent before stays sent (ET-59)."""
    c = ran(ticks, "a", second)
    c.fails("FAIL", "action 'ticks' #1.*output node 'r'")
    assert c.sent.shape("r") == [(0, b"a", True)]


def test_E102_headers_that_change_within_a_leaf_fail():
    """A leaf has one role."""
    user, model = (Message(b"x", {"role": role}, "text/plain") for role in ("user", "model"))
    assert ran(ticks, user, user, "same or none").texts("r") == ["xxsame or none"]
    ran(ticks, user, model).fails("FAIL", "headers")


def test_E102_items_may_be_of_any_kind():
    """Each is a leaf of its own."""
    c = ran(rows, {"k": 1}, "text", b"bytes")
    assert [leaf.media_type for leaf in c.sent.flatten("r")] == [JSON, TEXT, OCTETS]


@pytest.mark.parametrize(
    ("values", "leaves"),
    [
        (("a", "b"), [(TEXT, b"ab")]),
        ((b"a", b"b"), [(OCTETS, b"ab")]),
        (({}, "b"), [(JSON, b"{}"), (TEXT, b"b")]),
        ((Message(b"<p>", media_type="text/html"), "b"), [("text/html", b"<p>"), (TEXT, b"b")]),
        ((Message(b"a", media_type="text/plain; charset=utf-8"),) * 2, [("text/plain; charset=utf-8", b"aa")]),
    ],
)
def test_E099_an_output_without_annotation_goes_by_its_first_value(values, leaves):
    """Text and bytes grow one leaf; others are items."""
    c = Conversation(loose, models={"loose": source(*values)}).send(A("loose", {"x": "p"}, {"y": "r"}))
    assert [(leaf.media_type, leaf.data) for leaf in c.sent.flatten("r")] == leaves


def test_E104_the_type_of_a_message_is_its_own():
    """And its metadata are the leaf's."""
    headers = {"role": "model", "original-file-name": "a.png", "capture-time": "2026-01-31T12:00:00Z", "x-else": "y"}
    c = Conversation(messages).send(A("messages", {"x": "p"}, {"y": "r"}))
    c.emit("a1", Message(b"\x89", headers, "image/png")).finish("a1")
    (leaf,) = c.sent.flatten("r")
    assert (leaf.media_type, leaf.metadata.role, leaf.metadata.original_file_name) == ("image/png", "model", "a.png")
    assert leaf.metadata.capture_time.seconds == 1769860800


@pytest.mark.parametrize("function", [upper, ticks, rows])
@pytest.mark.parametrize("header", ["capture-time", "experimental"])
def test_E106_metadata_that_cannot_be_sent_fail(function, header):
    """A result that is not serialisable is the action's failure."""
    c = Conversation(function).send(F("p", 0, "x", more=True))
    name = function.__name__
    c.send(A(name, {"x": "p"} if name == "upper" else {}, {"y": "r"}))
    c.emit("a1", Message(b"x", {header: "no ::"}, "text/plain")).fails(
        "FAIL", f"action '{name}' #1: .*header '{header}'"
    )
    assert c.sent.of("r") == []


# A function that is mapped over an input of unknown length.


def test_E093_the_result_for_a_root_that_is_a_leaf_is_one_leaf():
    """Sent at once."""
    c = Conversation(upper).send(UPPER, F("p", 0, "a"))
    assert c.sent.shape("r") == [(0, b"A", False)]


@pytest.mark.parametrize("is_action_first", [True, False])
def test_E093_results_for_an_interior_root_are_items(is_action_first):
    """Each is sent at once, even if there is only one; what came first does not change the shape."""
    parts = [UPPER, K("p", 0, "a", more=True), F("a", 0, "a")]
    c = Conversation(upper).send_each(*(parts if is_action_first else parts[::-1]))
    assert len(c.sent.fragments) == 2
    c.send(F("p", 1))
    assert [more for _, _, more in c.sent.shape("r")] == [True, False]
    assert c.texts("r") == ["A"]


def test_E112_earlier_results_are_delivered_before_the_failure():
    """As items, since more were meant to come."""

    def fussy(x: str) -> str:
        if x == "bad":
            raise ValueError(x)
        return x

    c = Conversation(fussy).send(A("fussy", {"x": "p"}, {"y": "r"}), K("p", 0, "a", "b"))
    c.send(F("a", 0, "ok"), F("b", 0, "bad")).fails("FAIL", "action 'fussy' #1: ValueError: bad")
    (child,) = c.sent.of("r")[0].child_ids
    assert c.texts(child) == ["ok"]


def test_E093_no_result_is_an_empty_node():
    """The function was not called."""
    assert Conversation(upper).send(UPPER, F("p")).sent.shape("r") == [(0, None, False)]


def test_E093_a_function_with_one_bound_of_two_parameters_is_mapped():
    """The other has its default."""
    c = Conversation(scale).send(A("scale", {"x": "p"}, {"y": "r"}), K("p", 0, "a", "b"))
    c.send(F("a", 0, "1", type=JSON), F("b", 0, "2", type=JSON))
    assert c.texts("r") == ["10", "20"]


@pytest.mark.parametrize(
    ("function", "is_one", "form"),
    [
        (upper, True, Form.ONE), (upper, False, Form.MAPPED), (constant, True, Form.ONE), (total, False, Form.ONE),
        (relay, False, Form.LEAF), (blobs, False, Form.LEAF), (rows, False, Form.ITEMS), (loose, False, Form.BY_VALUE),
        (messages, False, Form.BY_VALUE),
    ],
)  # fmt: skip
def test_forms_follow_the_signature(function, is_one, form):
    """What an output becomes is known before its first value, but for those that say nothing."""
    spec = read(function)
    assert form_of(spec, spec.outputs[0], is_one=is_one) is form


def test_the_form_of_an_open_output_goes_by_value():
    """Nothing is declared for it."""
    assert form_of(read(tagged), StreamSpec("any"), is_one=False) is Form.BY_VALUE


def sends(x: str, ctx: Context) -> None: ...


def sends_more(x: str, ctx: Context) -> str:
    return str(ctx.outputs)


SENDS = function(outputs=("answer", "log"))(sends)
SENDS_MORE = function(outputs=("answer", "log"))(sends_more)


def sent_by(fn, *given):
    """The node of the first output of a function of one leaf that sent these values."""

    def model(_):
        yield Take(0)
        for value in given:
            yield Give(value)

    c = Conversation(fn, models={fn.__name__: model})
    return c.send(A(fn.__name__, {"x": "p"}, {"answer": "r", "log": "l"}), F("p", 0, "x"))


def test_E126_an_output_that_is_only_sent_to_takes_every_value():
    """Text is a leaf that grows, at once; other values are items."""
    assert sent_by(SENDS, "a", "b", "c").texts("r") == ["abc"]
    assert sent_by(SENDS, "a", "b").sent.shape("r") == [(0, b"a", True), (1, b"b", True), (2, b"", False)]
    assert sent_by(SENDS, {"n": 1}, {"n": 2}).texts("r") == ['{"n": 1}', '{"n": 2}']


def test_E126_an_output_that_is_also_returned_takes_every_value():
    """One value is the leaf that it has always been; a second one makes the output what its values say."""
    assert sent_by(SENDS_MORE, "a").sent.shape("r") == [(0, b"a", False)]
    assert sent_by(SENDS_MORE, "a", "b", "c").texts("r") == ["abc"]
    assert sent_by(SENDS_MORE, {"n": 1}, 2, 3).texts("r") == ['{"n": 1}', "2", "3"]
    assert sent_by(SENDS_MORE, "a", {"n": 1}).texts("r") == ["a", '{"n": 1}']
