"""Closures that decode one input, and encode one output."""

from typing import Any

import pytest

from invoker.author.spec import StreamSpec, Take
from invoker.codecs import builtin
from invoker.core import coding
from invoker.core.coding import LONGEST_KEY, MOST_KNOWN, Decoders, Encoders, wire_headers
from invoker.errors import EncodeError, NotAcceptable, UnacceptedType, UnsupportedMediaType
from invoker.message import METADATA, Message, Metadata, Ref

REGISTRY = builtin(entry_points=False)


def test_R011_a_peer_that_invents_parameters_does_not_fill_the_memory():
    """Closures that are remembered are few, those of long media types are not remembered, and all decode."""
    decoders = Decoders(0, StreamSpec("xs", str), REGISTRY)
    for number in range(MOST_KNOWN + 5):
        media_type = f"text/plain;n={number}"
        assert decoders.find(media_type)(Message(b"x", media_type=media_type)) == "x"
        assert decoders.known[media_type]
    assert len(decoders.known) == 5
    long = f"text/plain;n={'x' * LONGEST_KEY}"
    assert decoders.find(long)(Message(b"x", media_type=long)) == "x"
    assert long not in decoders.known


def test_R011_a_function_that_makes_new_classes_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch):
    """Closures by class are as few."""
    sizes = []
    remember = coding._remember
    monkeypatch.setattr(coding, "_remember", lambda known, *more: (remember(known, *more), sizes.append(len(known))))
    encoders = make_output("text/plain")
    for number in range(MOST_KNOWN + 5):
        assert encoders.encode(type(f"Text{number}", (str,), {})("x")).payload == b"x"
    assert max(sizes) == MOST_KNOWN


def make_output(accept="*/*", name="out"):
    return Encoders(0, name, accept, REGISTRY)


def test_R100_nothing_acceptable_fails_when_the_output_is_made():
    """Negotiation happens before the function is called, and names the output."""
    with pytest.raises(NotAcceptable, match="'text/zglorbf' for output #0"):
        make_output("text/zglorbf")


def test_R099_the_best_type_that_takes_the_value_is_chosen_for_each_value():
    """One output may carry several media types, each within what is accepted."""
    output = make_output("application/json, application/octet-stream")
    made: list[Any] = [output.encode(value) for value in ({"a": 1}, b"\x00", "x", b"\x01")]
    assert [(one.payload, one.media_type) for one in made] == [
        (b'{"a":1}', "application/json"),
        (b"\x00", "application/octet-stream"),
        (b'"x"', "application/json"),
        (b"\x01", "application/octet-stream"),
    ]


def test_R104_a_value_that_no_accepted_codec_takes_is_an_error():
    """The detail names the output."""
    with pytest.raises(EncodeError, match="output #0"):
        make_output("application/json").encode(b"\x00")


def test_R107_headers_of_a_message_travel_and_content_type_is_negotiated():
    """A Content-Type header is a plain header; it never changes the media type."""
    made = make_output("text/plain").encode(Message("x", headers={"Content-Type": "text/csv", "n": ["1", "2"]}))
    assert made.media_type == "text/plain"
    assert dict(made.headers) == {"Content-Type": "text/csv", "n": "1"}


def test_T084_metadata_need_not_be_of_the_type_that_is_declared():
    """It has a header with its key; an item of that type is refused."""
    encoders = Encoders(0, "out", "application/json", REGISTRY, type_=int)
    made = encoders.encode(Metadata("progress", "half"))
    assert (made.payload, dict(made.headers)) == (b'"half"', {METADATA: "progress"})
    assert encoders.encode(5).payload == b"5"
    with pytest.raises(EncodeError):
        encoders.encode("half")


def test_a_media_type_that_the_function_chose_is_obeyed_when_it_is_accepted():
    """Bytes that the function encoded itself pass untouched."""
    png = make_output("*/*").encode(Message(b"\x89PNG", media_type="image/png"))
    assert (png.payload, png.media_type) == (b"\x89PNG", "image/png")
    with pytest.raises(EncodeError, match="the caller accepts 'text/plain'"):
        make_output("text/plain").encode(Message(b"\x89PNG", media_type="image/png"))
    chosen = make_output("application/json, text/plain").encode(Message("x", media_type="text/plain"))
    assert (chosen.payload, chosen.media_type) == (b"x", "text/plain")


def test_R098_what_leaves_is_concrete_and_has_no_q():
    """Neither a range nor a q leaves the house."""
    output = make_output("text/plain;q=0.3, image/*")
    assert output.encode("x").media_type == "text/plain"
    assert output.encode(Message(b"x", media_type="image/png;q=0.1")).media_type == "image/png"
    with pytest.raises(EncodeError):
        output.encode(Message(b"x", media_type="image/*"))


@pytest.mark.parametrize("headers", [{"": "x"}, {"a": "\ud800"}, {"\udfff": "x"}])
def test_R108_headers_unfit_for_the_wire_are_errors(headers):
    """An empty name and lone surrogates are refused."""
    with pytest.raises(EncodeError, match="output #2"):
        wire_headers(headers, 2)


def test_R108_headers_become_text():
    """Unicode and empty values are kept, everything else goes through str()."""
    assert wire_headers({"Ünï": "日本", "n": 5, "empty": ""}, 0) == {"Ünï": "日本", "n": "5", "empty": ""}


def test_E059_a_ref_is_sent_as_its_uri() -> None:
    """E-059: a Ref is a message without bytes whose header says where they lie; its own headers stay."""
    output = Encoders(0, "out", "*/*", builtin(), by_value=True)
    made = output.encode(Ref("https://example.org/a.png", "image/png"))
    assert (made.payload, dict(made.headers), made.media_type) == (
        b"",
        {"reference": "https://example.org/a.png"},
        "image/png",
    )
    wrapped = output.encode(Message(Ref("file:///a"), {"role": "model"}))
    assert dict(wrapped.headers) == {"role": "model", "reference": "file:///a"}
    with pytest.raises(EncodeError, match="no type"):
        output.encode(Ref("https://example.org/", "no type"))


@pytest.mark.parametrize(
    ("type_", "take", "media_type", "value"),
    [
        (str, Take.PAYLOAD, "text/markdown", "x"),
        (bytes, Take.PAYLOAD, "image/png", b"x"),
        (str, Take.MESSAGE, "image/png", b"x"),
        (str, Take.MESSAGE, "application/x-protobuf; type=EndOfTurn", b"x"),
    ],
)
def test_E047_an_open_input_takes_types_without_codecs(type_: type, take: Take, media_type: str, value: object) -> None:
    """E-047, E-049: text as text, anything else as bytes for those who take bytes or the whole message."""
    decoders = Decoders(0, StreamSpec("x", type_, take), builtin(), is_open=True)
    assert decoders.find(media_type)(Message(b"x", media_type=media_type)) == value


def test_E047_an_open_input_refuses_what_cannot_be_made() -> None:
    """E-047: a str cannot be made of an image; an input that is not open takes nothing without a codec."""
    for type_, is_open in ((str, True), (bytes, False)):
        decoders = Decoders(0, StreamSpec("x", type_), builtin(), is_open=is_open)
        with pytest.raises(UnsupportedMediaType):
            decoders.find("image/png")


def test_E104_text_may_be_of_a_kind_without_a_codec() -> None:
    """E-104: a Message keeps its own type; text of any ``text/*`` is text."""
    made = Encoders(0, "out", "*/*", builtin(), by_value=True).encode(Message("hé", media_type="text/html"))
    assert (made.payload, made.media_type) == ("hé".encode(), "text/html")


@pytest.mark.parametrize(
    ("accept", "media_type"), [("*/*", "text/html"), ("text/*", "text/html"), ("image/*, */*;q=0.1", "image/svg+xml")]
)
def test_H208_text_may_be_of_any_accepted_type(accept: str, media_type: str) -> None:
    """HTML and SVG, for example; its charset is obeyed, and what is not accepted is refused."""
    encoders = Encoders(0, "out", accept, builtin())
    assert encoders.encode(Message("hé", media_type=media_type)) == Message("hé".encode(), {}, media_type)
    assert encoders.encode(Message("hé", media_type=f"{media_type}; charset=latin-1")).payload == b"h\xe9"


def test_H208_text_of_a_type_that_is_not_accepted_is_refused() -> None:
    """So is what is no text, and a wildcard."""
    for accept, value, media_type, kind in (
        ("application/json", "hé", "text/html", UnacceptedType), ("application/json", b"", "text/html", UnacceptedType),
        ("*/*", 3, "text/html", EncodeError), ("*/*", "hé", "text/*", EncodeError),
    ):  # fmt: skip
        with pytest.raises(EncodeError) as refused:
            Encoders(0, "out", accept, builtin()).encode(Message(value, media_type=media_type))
        assert type(refused.value) is kind
        assert refused.value.met == ("text/html" if kind is UnacceptedType else "")
