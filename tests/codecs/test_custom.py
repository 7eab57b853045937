"""`invoker.codecs.custom`: codecs of function authors."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, TypedDict

import pytest

from invoker.codecs import Codec, Registry, TextCodec, builtin, codec, custom, register, registered, unregister
from invoker.errors import DecodeError, EncodeError, LoadError, NotAcceptable, StopInvocation, UnsupportedMediaType
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Headers, Message
from tests.codecs.wire import JSON, TEXT, Opaque, Point, decode, encode

ROWS = "text/x-rows"


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    """A test begins without codecs that others registered, and what it registers is gone behind it."""
    before = registered()
    custom._replace(())
    yield
    custom._replace(before)


class Rows:
    """Rows of text; the full interface."""

    media_types = (ROWS,)

    def decode(self, message: Message[bytes], type_: Any) -> list[list[str]]:
        dialect = message.headers.get("x-separator", ",")
        return list(csv.reader(io.StringIO(message.payload.decode(), newline=""), delimiter=dialect))

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        lines = io.StringIO(newline="")
        csv.writer(lines).writerows(value)
        return Message(lines.getvalue().encode(), media_type=str(media_type))

    def can_encode(self, value: Any) -> bool:
        return isinstance(value, list)


class Keyed(TypedDict):
    """A class that no other is a subclass of."""

    a: int


class Sized(Protocol):
    """A class that cannot be asked at run time."""

    def size(self) -> int:
        """A number."""


@pytest.mark.parametrize(("type_", "is_claimed"), [(list, True), (dict, False), (Keyed, False), (Sized, False)])
def test_a_codec_claims_what_its_decode_returns(type_: Any, is_claimed: bool) -> None:
    """Whatever class it is asked for; some refuse to be compared."""

    class Listing:
        def decode(self, message: Message[bytes], type_: Any) -> list:  # type: ignore[type-arg]
            return [message, type_]

    assert custom.Adapted(Listing(), (ROWS,)).claims(type_) is is_claimed


def test_RT75_R090_a_registered_codec_works_both_ways() -> None:
    """By decorator; also in registries that were made before."""
    registry = Registry()
    with pytest.raises(UnsupportedMediaType):
        registry.decoder(ROWS, Any)
    codec("text/x-rows")(Rows)
    assert decode(ROWS, b"a,b\r\n1,2\r\n", registry=registry) == [["a", "b"], ["1", "2"]]
    assert encode(f"image/png, {ROWS}", [["a", "b"]], registry) == (ROWS, b"a,b\r\n")
    assert isinstance(Rows(), Codec)
    assert [offer.media_type.essence for offer in registry.offers("*/*")][-1] == ROWS  # custom ones come last
    unregister(Rows)
    with pytest.raises(NotAcceptable):
        registry.offers(ROWS)


def test_R071_headers_may_steer_decoding() -> None:
    """The codec gets the whole message."""
    register(Rows())
    message = Message(b"a;b", Headers({"X-Separator": ";"}), ROWS)
    assert Registry().decoder(ROWS, Any)(message) == [["a", "b"]]


def test_functions_make_a_codec() -> None:
    """From payload to value and back."""
    codec(
        "image/x-point", decode=lambda payload: Point(len(payload)), encode=lambda value: b"." * value.x, encodes=Point
    )
    assert decode("image/x-point", b"...", Point) == Point(3)
    assert encode("image/x-point", Point(2)) == ("image/x-point", b"..")
    assert encode("image/*, */*;q=0.1", Point(2)) == ("image/x-point", b"..")
    with pytest.raises(EncodeError):
        encode("image/x-point", 2)
    codec("text/x-in", decode=bytes.decode)
    with pytest.raises(NotAcceptable):
        Registry().offers("text/x-in")
    codec("text/x-out", encode=str.encode, encodes=(str,))
    with pytest.raises(UnsupportedMediaType):
        Registry().decoder("text/x-out", Any)
    assert encode("text/x-out", "x") == ("text/x-out", b"x")


def test_R090_a_codec_may_override_a_built_in_one() -> None:
    """For the values that it takes; the built-in one keeps the others and its place in the server order."""

    @codec(JSON)
    class OpaqueJson:
        def decode(self, message: Message[bytes], type_: Any) -> Any:
            return Opaque(message.payload)

        def can_decode(self, type_: Any) -> bool:
            return type_ is Opaque

        def encode(self, value: Any, media_type: MediaType) -> bytes:
            return b'"opaque"'

        def can_encode(self, value: Any) -> bool:
            return type(value) is Opaque

    assert encode("*/*", Opaque(1)) == (JSON, b'"opaque"')
    assert encode("*/*", 1) == (JSON, b"1")
    assert decode(JSON, b"x", Opaque).secret == b"x"
    assert decode(JSON, b"1", int) == 1


def test_of_two_codecs_the_latest_is_asked_first_and_a_reload_replaces() -> None:
    """The same class of the same module is the same codec."""
    made = []
    for word in (b"old", b"new"):

        class Twice:
            said = word

            def encode(self, value: Any, media_type: MediaType) -> bytes:
                return self.said

        made.append(codec("text/x-twice")(Twice))
        assert encode("text/x-twice", 1)[1] == word
    assert made[0] is not made[1]
    assert sum(one.media_types == ("text/x-twice",) for one in registered()) == 1
    codec("text/x-twice", encode=lambda _: b"newest")
    assert encode("text/x-twice", 1)[1] == b"newest"


def test_families_are_matched_after_names() -> None:
    """`image/*` takes every image that nobody names."""
    codec("image/*", "*/*+xml", decode=lambda payload: payload[::-1], encode=lambda value: value[::-1], encodes=bytes)
    assert decode("image/png", b"ab") == decode("image/svg+xml", b"ab") == decode("text/x+xml", b"ab") == b"ba"
    assert encode("image/webp", b"ab") == ("image/webp", b"ba")
    with pytest.raises(NotAcceptable):
        Registry().offers("image/*")  # nothing concrete to offer
    codec("image/png", decode=lambda payload: "png")
    assert decode("image/png", b"ab") == "png"


def test_R099_a_family_takes_nothing_that_was_not_asked_for_by_name() -> None:
    """Bytes under a wildcard stay octets, though a family of texts would take them; declared outputs are names."""
    codec("text/*", "image/*", decode=len, encode=lambda _: b"family")
    assert encode("*/*", b"x") == ("application/octet-stream", b"x")
    with pytest.raises(EncodeError):
        encode("*/*, text/*", Opaque(1))
    assert encode("text/plain", Opaque(1)) == (TEXT, b"family")
    assert encode("*/*", Opaque(1), Registry().declaring([], ["image/png"])) == ("image/png", b"family")


class Fails(Exception):
    """Its text has a path in it."""

    def __str__(self) -> str:
        return f"no such file: {__file__}"


@pytest.mark.parametrize(
    "problem",
    [Fails(), ValueError("x"), RecursionError(), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(),
     MemoryError(), DecodeError("mine"), FileNotFoundError(2, "No", "/a/b")],
)  # fmt: skip
def test_R104_R123_whatever_a_codec_raises_is_ours(problem: BaseException) -> None:
    """DecodeError and EncodeError, which name the stream and no path; the process lives."""

    def broken(_: Any) -> Any:
        raise problem

    codec("x/y", decode=broken, encode=broken)
    for error, where, action in (
        (DecodeError, "input #0: ", lambda: decode("x/y", b"")), (EncodeError, "output #0: ", lambda: encode("x/y", 1))
    ):  # fmt: skip
        with pytest.raises(error, match=where) as caught:
            action()
        assert "/" not in str(caught.value).replace("x/y", "").replace("<path>", "")


def test_can_encode_and_can_decode_may_fail_too() -> None:
    """They are user code as well."""

    class Odd:
        decode = encode = lambda *_: None

        def can_encode(self, _: Any) -> bool:
            raise SystemExit

        can_decode = can_encode

    register(Odd, ("x/y",))
    with pytest.raises(EncodeError, match="SystemExit"):
        encode("x/y", 1)
    with pytest.raises(DecodeError, match="SystemExit"):
        decode("x/y", b"")


def test_the_end_of_an_invocation_passes_through() -> None:
    """It is no failure of the codec."""

    def stop(_: Any) -> Any:
        raise StopInvocation

    codec("x/y", decode=stop, encode=stop)
    for action in (lambda: decode("x/y", b""), lambda: encode("x/y", 1)):
        with pytest.raises(StopInvocation):
            action()


@pytest.mark.parametrize(
    "result", [None, "text", Message("text"), Message(b"", EMPTY, "a/b"), Message(b"", EMPTY, "*/*"), Message(b"",
    EMPTY, "x/y;q=1"),
               Message(b"", EMPTY, "nonsense")]
)  # fmt: skip
def test_R098_what_a_codec_gives_is_checked(result: Any) -> None:
    """Bytes, in the negotiated media type."""
    codec("x/y", encode=lambda _: result)
    with pytest.raises(EncodeError):
        encode("x/y", 1)


def test_R102_a_codec_sees_the_parameters_and_may_tell_some() -> None:
    """Bytes go out under the bare name, without the codec's headers."""

    @codec("x/y")
    class Loud:
        def encode(self, value: Any, media_type: MediaType) -> Any:
            level = media_type.param("level")
            text = value.encode() * int(level or 1)
            return Message(memoryview(text), Headers({"a": "b"}), f"x/y;level={level}" if level else "")

    assert encode("x/y;level=2;other=1;q=0.5", "a") == ("x/y;level=2", b"aa")
    assert encode("x/y", "a") == ("x/y", b"a")


@pytest.mark.parametrize(
    ("action", "error", "says"),
    [
        (lambda: codec()(Rows) if not getattr(Rows, "media_types", None) else codec()(type("Bare", (),
        {"decode": len})),
         ValueError, "needs a media type"),
        (lambda: codec("text")(Rows), ValueError, "'text' is not a media type"),
        (lambda: codec("x/y", "*/*", decode=len), ValueError, "every media type"),
        (lambda: codec("a/b")(object), TypeError, "object is not a codec: it has neither decode"),
        (lambda: codec("a/b")(lambda payload: payload), TypeError, "decorates a class; for functions write"),
        # type: ignore[arg-type]
        (lambda: register(7), TypeError, "int is not a codec"),
        (lambda: codec(decode=len), ValueError, "needs a media type"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_when_it_is_made(action: Any, error: type[Exception], says: str) -> None:
    """With the way to write it."""
    with pytest.raises(error, match=says):
        action()


def test_a_built_in_codec_may_serve_another_name() -> None:
    """An instance of one is registered like any other."""
    register(TextCodec(("text/markdown",)))
    assert decode("text/markdown;charset=latin1", b"\xe9") == "é"
    assert encode("text/markdown", "é") == ("text/markdown", "é".encode())
    assert encode("text/*", "x")[0] == TEXT


def test_entry_points_bring_codecs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class, an instance or a list; what cannot be loaded stops the start."""
    points = [metadata.EntryPoint("rows", "tests.codecs.test_custom:Rows", "invoker.codecs")]
    monkeypatch.setattr(custom, "installed", lambda group: points if group == "invoker.codecs" else [])
    assert decode(ROWS, b"a,b", registry=builtin()) == [["a", "b"]]
    with pytest.raises(UnsupportedMediaType):
        builtin(entry_points=False).decoder(ROWS, Any)
    points[0] = metadata.EntryPoint("many", "tests.codecs.test_custom:MANY", "invoker.codecs")
    assert encode("text/markdown", "x", builtin()) == ("text/markdown", b"x")
    points[0] = metadata.EntryPoint("gone", "tests.codecs.nowhere:Rows", "invoker.codecs")
    with pytest.raises(
        LoadError, match=r"codec 'gone' \(tests.codecs.nowhere:Rows\) cannot be loaded: No module named"
    ):
        builtin()


def test_installed_packages_are_read_once_for_each_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is installed is found where Python looks for modules now."""
    named = custom.installed("invoker.test")
    info = tmp_path / "some-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[invoker.test]\nb = some:b\na = some:a\n")
    assert custom.installed("invoker.test") == named == []
    monkeypatch.syspath_prepend(tmp_path)
    assert [one.name for one in custom.installed("invoker.test")] == ["a", "b"]
    monkeypatch.setattr(metadata, "entry_points", lambda: pytest.fail("it was read again"))
    assert [one.value for one in custom.installed("invoker.test")] == ["some:a", "some:b"]


MANY = [Rows, TextCodec(("text/markdown",))]
