"""`invoker.codecs.registry`: which codec decodes, and how an output is negotiated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.codecs import Codec, JsonCodec, OctetsCodec, Registry, builtin
from invoker.codecs.exact import EXACT
from invoker.codecs.registry import builtin_codecs
from invoker.codecs.several import SEVERAL
from invoker.errors import DecodeError, EncodeError, InvocationError, NotAcceptable, Status, UnsupportedMediaType
from invoker.mediatypes import parse
from invoker.message import EMPTY, Message
from tests.codecs.wire import CLOUDEVENTS, FORM, JSON, MSGPACK, OCTETS, PATIENT, TEXT, Point, decode, encode

REGISTRY = builtin(entry_points=False)


@pytest.mark.parametrize("media_type", ["application/x-doom", "text/zglorbf", "text/html", "image/png", "x/y+json"])
def test_RT19_R065_R093_a_type_without_codec_is_unsupported(media_type: str) -> None:
    """The text begins with punctuation and names type and input."""
    with pytest.raises(UnsupportedMediaType) as caught:
        REGISTRY.decoder(media_type, Any, index=3)
    assert str(caught.value) == f"Invoker: Unsupported Media Type: Unsupported content-type '{media_type}' for input #3"
    assert caught.value.status is Status.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "media_type", ["!![]not a type", "text", "text/plain; charset", "a/b, c/d", "\udcff", "x" * 10_000]
)
def test_RT18_R066_garbage_is_unsupported(media_type: str) -> None:
    """The same way, and with a text that is fit for the wire."""
    with pytest.raises(UnsupportedMediaType, match="Unsupported content-type '") as caught:
        REGISTRY.decoder(media_type, Any)
    assert len(str(caught.value).encode()) < 300


@pytest.mark.parametrize("media_type", ["*/*", "text/*", "application/*", "application/*+json"])
def test_RT17_R067_a_wildcard_is_unsupported(media_type: str) -> None:
    """There is nothing to decode with."""
    with pytest.raises(UnsupportedMediaType):
        REGISTRY.decoder(media_type, Any)


def test_R060_R061_the_codec_is_found_without_regard_to_case() -> None:
    """Parameters and all; nothing means octets."""
    assert decode('Application/JSON; Charset="UTF-8"', b'{"a":1}') == {"a": 1}
    assert decode("", b"\0") == b"\0"


def test_R068_the_input_is_named_in_a_bad_input() -> None:
    """By its number."""
    with pytest.raises(
        DecodeError, match=r"^Invoker: Bad Input Signal: input #7: application/json cannot become int: "
    ) as caught:
        REGISTRY.decoder(JSON, int, index=7)(Message(b"x", EMPTY, JSON))
    assert caught.value.status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("accept", "value", "media_type", "payload"),
    [
        ("text/plain, application/json", "x", TEXT, b"x"),  # RT-32
        ("application/json, text/plain", "x", JSON, b'"x"'),
        ("text/plain;q=0.2, application/json;q=0.9", "x", JSON, b'"x"'),  # RT-33
        ("text/plain;q=0, */*;q=0.1", "x", JSON, b'"x"'),  # RT-34
        ("application/json;q=0, */*", "x", TEXT, b"x"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "x", JSON, b'"x"'),  # RT-35
        ("application/xml;q=0.9, application/json", "x", JSON, b'"x"'),  # RT-36
        ("", "x", JSON, b'"x"'),  # RT-37
        (" ", 1, JSON, b"1"),
        ("image/png,,application/json", 1, JSON, b"1"),
        ("*/*", b"\0", OCTETS, b"\0"),  # RT-38
        ("application/json, application/octet-stream", b"\0", OCTETS, b"\0"),
        ("text/*", "x", TEXT, b"x"),
        ("application/*", "x", JSON, b'"x"'),
        ("application/*", b"x", OCTETS, b"x"),
        ("*/*", None, JSON, b"null"),
        ("*/*", True, JSON, b"true"),
        ("text/plain, */*;q=0.5", {"a": 1}, JSON, b'{"a":1}'),
        ("application/x-www-form-urlencoded, */*", {"a": 1}, FORM, b"a=1"),
        ("application/json;flavour=sweet", 1, JSON, b"1"),
        ("application/cloudevents+json;q=0.9, image/png", 1, CLOUDEVENTS, b"1"),
        ("application/msgpack", 1, MSGPACK, b"\x01"),
        ("text/plain;charset=utf-16le", "x", "text/plain;charset=utf-16le", b"x\0"),
    ],
)
def test_RT32_R095_R099_R101_the_best_type_that_takes_the_value(
    accept: str, value: object, media_type: str, payload: bytes
) -> None:
    """By the caller's list, then ours; the media type is concrete and without q."""
    assert encode(accept, value, REGISTRY) == (media_type, payload)


def test_R097_the_server_order() -> None:
    """json, text, octets, form, cloudevents, then the rest."""
    order = [offer.media_type.essence for offer in REGISTRY.offers("*/*")]
    assert order[:6] == [JSON, TEXT, OCTETS, FORM, CLOUDEVENTS, MSGPACK]


def test_RT30_RT31_R100_nothing_acceptable_is_told_at_once() -> None:
    """With type, number and name of the output."""
    with pytest.raises(NotAcceptable) as caught:
        REGISTRY.offers("text/zglorbf")
    assert str(caught.value) == "Invoker: Not Acceptable: Unsupported content-type 'text/zglorbf' for output #0"
    assert caught.value.status is Status.INVALID_ARGUMENT
    with pytest.raises(NotAcceptable, match=r"'image/png' for output #1 'p'$"):
        REGISTRY.offers("image/png", index=1, name="p")
    for accept in ("no type at all", ",", "application/json;q=0", "*/*;q=0", "x" * 100_000):
        with pytest.raises(NotAcceptable) as caught:
            REGISTRY.offers(accept)
        assert len(str(caught.value)) < 300


def test_RT39_R099_R104_no_type_that_takes_the_value_is_an_encode_error() -> None:
    """With output, value's type and what would have been acceptable."""
    with pytest.raises(
        EncodeError, match=r"output #2: no acceptable media type takes bytes; acceptable are application/json"
    ) as caught:
        REGISTRY.encoder(REGISTRY.offers(JSON), b"", index=2)
    assert caught.value.status is Status.UNKNOWN
    for accept in ("*/*", TEXT, JSON):
        with pytest.raises(EncodeError, match="takes object"):
            encode(accept, object())


@PATIENT
@given(
    st.sampled_from(["*/*", "text/*", "application/*", JSON, TEXT, OCTETS, FORM, "image/png", "a/b"]),
    st.sampled_from(["", ";q=0.5", ";q=0", ";q=x", ";charset=utf-16", ";charset=nope", ";x=1;q=0.9"]),
    st.sampled_from(["x", 1, None, b"x", {"a": 1}, [1], 1.5, True, Point(1)]),
)
def test_R098_the_media_type_is_concrete_and_within_the_list(essence: str, parameters: str, value: object) -> None:
    """Never a wildcard, never with q; or an error of ours."""
    accept = essence + parameters
    try:
        media_type, payload = encode(accept, value, REGISTRY)
    except (NotAcceptable, EncodeError):
        return
    found, asked = parse(media_type), parse(accept)
    assert not found.is_wildcard
    assert found.param("q") is None
    assert asked.type in ("*", found.type)
    assert asked.subtype in ("*", found.subtype)
    wanted = bytes if isinstance(value, bytes) else Any  # the author answers for the charset of bytes
    REGISTRY.decoder(media_type, wanted)(Message(payload, EMPTY, media_type))  # what we write, we read


@PATIENT
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_negotiated_or_refused(media_type: str, accept: str) -> None:
    """Never anything but our own errors."""
    for action in (lambda: REGISTRY.decoder(media_type, Any), lambda: REGISTRY.offers(accept)):
        try:
            action()
        except InvocationError as error:
            str(error).encode()


def test_answers_are_made_once_and_caches_are_bounded() -> None:
    """Peers choose the keys."""
    registry = Registry()
    assert registry.decoder(JSON, Point) is registry.decoder(JSON, Point)
    offers = registry.offers("*/*")
    assert registry.offers("*/*") is offers
    assert registry.encoder(offers, 1) is registry.encoder(offers, 2)
    for number in range(2000):
        registry.decoder(f"{JSON};x={number}", Any)
        registry.encoder(registry.offers(f"{JSON};x={number}"), 1)
    registry.decoder(f"{JSON};x={'y' * 1000}", Any)
    for cache in (registry._decoders, registry._offers, registry._encoders):
        assert len(cache) <= 512
        assert not any("yyyy" in str(key) for key in cache)


def test_an_annotation_that_cannot_be_hashed_works() -> None:
    """It is not cached, that is all."""
    type_ = Annotated[int, msgspec.Meta(extra={"a": []}, ge=0)]
    assert decode(JSON, b"1", type_) == 1
    with pytest.raises(DecodeError):
        decode(JSON, b"-1", type_)
    assert decode(JSON, b'"x"', str | bytes | type_) == "x"


class Upper:
    """A codec of one registry only."""

    media_types = ("text/x-upper",)

    def decode(self, message: Message[bytes], type_: Any) -> str:
        return message.payload.decode().upper()

    def encode(self, value: Any, media_type: Any) -> bytes:
        return str(value).upper().encode()

    def can_encode(self, value: Any) -> bool:
        return isinstance(value, str)


def test_a_registry_may_have_codecs_of_its_own() -> None:
    """A copy goes its own way."""
    registry = Registry()
    assert isinstance(Upper(), Codec)
    copy = registry.copy()
    copy.register(Upper())
    assert decode("text/x-upper", b"a", registry=copy.copy()) == "A"
    assert encode("text/x-upper", "a", copy) == ("text/x-upper", b"A")
    with pytest.raises(UnsupportedMediaType):
        registry.decoder("text/x-upper", Any)
    assert encode("*/*", b"", Registry([OctetsCodec(), JsonCodec()]))[0] == OCTETS
    assert encode("*/*", "x", Registry([OctetsCodec(), JsonCodec()]))[0] == OCTETS


def test_first_or_last() -> None:
    """The one that is asked first overrides; the one that is asked last fills in."""

    class Text(Upper):
        media_types = (TEXT,)

    first, last = Registry(), Registry()
    first.register(Text())
    last.register(Text(), first=False)
    assert (encode(TEXT, "a", first), encode(TEXT, "a", last)) == ((TEXT, b"A"), (TEXT, b"a"))


def test_declared_types_without_codec_are_raw_bytes_or_text() -> None:
    """Those of outputs come first when the caller leaves the choice to us."""
    registry = Registry().declaring(["text/x-log; a=b"], ["image/png", JSON])
    assert decode("image/png", b"\xff", registry=registry) == b"\xff"
    assert decode("text/x-log;charset=latin1", b"\xe9", registry=registry) == "é"
    assert encode("*/*", b"\xff", registry) == ("image/png", b"\xff")
    assert encode("image/*", b"\xff", registry) == ("image/png", b"\xff")
    assert encode("*/*", 1, registry) == (JSON, b"1")
    assert encode("text/x-log", "é", registry) == ("text/x-log", "é".encode())
    assert encode("*/*", b"x", Registry().declaring(["image/png"], []))[0] == OCTETS


PROBLEM = "application/problem+json"


@pytest.mark.parametrize("media_type", ["text/html", TEXT, JSON, PROBLEM, "image/png"])
def test_bytes_of_a_declared_type_are_encoded_already(media_type: str) -> None:
    """They leave unchanged as that type. What its codec reads and writes besides stays."""
    registry = Registry().declaring([], [media_type])
    for accept in ("", "*/*", media_type):
        assert encode(accept, b"\xff", registry) == (media_type, b"\xff")
    if media_type in (JSON, PROBLEM):
        assert encode("*/*", "x", registry) == (media_type, b'"x"')
        assert decode(media_type, b"{}", dict, registry=registry) == {}


def test_the_import_is_cheap() -> None:
    """Nothing heavy is loaded before it is needed."""
    heavy = {"numpy", "pydantic", "werkzeug", "python_multipart", "email", "importlib.metadata", "hypothesis"}
    code = f"import sys, invoker.codecs; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"


def test_an_input_is_told_by_its_number_and_name() -> None:
    """Also where another input of the same number and type came before."""
    registry = builtin(entry_points=False)
    for name, where in (("a", "input #0 'a'"), ("b", "input #0 'b'"), ("", "input #0")):
        decode = registry.decoder("text/plain", int, name=name)
        with pytest.raises(DecodeError) as caught:
            decode(Message(b"x"))
        assert caught.value.detail.startswith(f"{where}: text/plain cannot become int")


def test_R090_a_codec_that_is_registered_after_an_answer_changes_it() -> None:
    """What was remembered of decoders, offers and encoders is forgotten, and the version is another one."""

    class Text(Upper):
        media_types = (TEXT,)

    registry = builtin(entry_points=False)

    def answers() -> tuple[Any, ...]:
        return decode(TEXT, b"a", registry=registry), encode(TEXT, "a", registry)[1]

    before, version = answers(), registry.version
    assert before[1] == b"a"
    assert registry.version is version
    registry.register(Text())
    assert registry.version is not version
    assert answers()[1] == b"A"
    assert answers()[0] != before[0]


def test_every_built_in_media_type_stands_in_its_page() -> None:
    """But those that sessions use among themselves."""
    page = (Path(__file__).parents[2] / "docs/reference/media-types.md").read_text()
    known = {name for one in builtin_codecs(pickle=True, arrays=True) for name in one.media_types}
    assert {name for name in known - {EXACT, SEVERAL} if f"`{name}`" not in page} == set()
