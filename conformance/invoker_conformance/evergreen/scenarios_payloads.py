"""Payloads and metadata: media types, decoding, and the values that a function gets. Catalogue 2.3."""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import StringValue

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.actions import HI, items, parts, upper
from invoker_conformance.evergreen.frames import EOT, JSON, OCTETS, TEXT, A, F, K, Part, bytewise, tree
from invoker_conformance.evergreen.rules import BAD, FRAG
from invoker_conformance.evergreen.session import Session
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario

PNG = bytes.fromhex("89504e470d0a1a0a00ff")
OCTETS_OF_P = A("octets", {"value": "p"}, {"out": "r"})
KIND_OF_P = A("kind", {"value": "p"}, {"out": "r"})


def seen(data: bytes) -> dict[str, Any]:
    """Bytes in the form in which the functions return them."""
    return {"bytes": len(data), "hex": data[:16].hex()}


@scenario("ET-21", "E-035", function="upper")
async def metadata_on_seq_one(stage: Stage) -> None:
    """Metadata on a seq other than 0 aborts as soon as it arrives, even if empty or equal to that of seq 0."""
    empty = F("p", 1, "+", m=pb.ChunkMetadata(), t="x")
    await stage.fails(FRAG, F("p", 1, "+", m=TEXT, t="x"))
    await stage.fails(FRAG, empty)
    await stage.fails(FRAG, F("p", 0, "+", m=TEXT, t="x"), F("p", 1, m=TEXT, t="y"))


@scenario("ET-22", "E-034", function="upper")
async def metadata_missing_on_seq_zero(stage: Stage) -> None:
    """A chunk at seq 0 without metadata aborts, used or not."""
    await stage.fails(FRAG, F("p", t="x"))
    await stage.fails(FRAG, upper(), F("p", 1, t="x"), F("p", 0, "+", t="x"))


@scenario("E-037", function=("upper", "items"))
async def metadata_applies_to_the_whole_leaf(stage: Stage) -> None:
    """The type at seq 0 decodes the fragments after it, also if they came before it."""
    await stage.succeeds(items(), F("p", 1, t="1]"), F("p", 0, "+", m=JSON, t="["), r=[{"items": [[1]]}])


@scenario("ET-23", "E-038", "E-131", function=("kind", "octets"))
async def empty_mimetype(stage: Stage) -> None:
    """An empty mimetype is application/octet-stream: the function gets bytes."""
    await stage.succeeds(KIND_OF_P, F("p", m="", t="hi"), r=[{"value": seen(b"hi")}])
    await stage.succeeds(OCTETS_OF_P, F("p", m=pb.ChunkMetadata(role="user"), t="hi"), r=[b"hi"])


@scenario("E-039", function=("upper", "octets", "kind", "parts"))
async def malformed_mimetype(stage: Stage) -> None:
    """A malformed mimetype is an error only for a parameter that has to decode it."""
    leaf = F("p", m="not a type", t="hi")
    await stage.succeeds(leaf)
    await stage.succeeds(OCTETS_OF_P, leaf, r=[b"hi"])
    await stage.fails(BAD, upper(), leaf)
    session = await stage.succeeds(parts(), leaf)
    if (met := told(session)[0]["value"]) != seen(b"hi"):
        raise session.failure(f"{met} in message form", f"{seen(b'hi')}")


@scenario("ET-28", "E-040", function="upper")
async def utf8_split_inside_character(stage: Stage) -> None:
    """A character may be spread over fragments, also at the border of messages that come backwards."""
    first, second, third = (bytes([byte]) for byte in "日".encode())
    frames = [F("p", 0, "+", m=TEXT, d=first), F("p", 1, "+", d=second), F("p", 2, d=third)]
    await stage.succeeds(upper(), *frames, r=["日"])
    await stage.succeeds(upper(), *reversed(frames), r=["日"])


@scenario("ET-28", "E-040", "E-095", function="pieces")
async def utf8_split_in_a_text_stream(stage: Stage) -> None:
    """A text stream that reads fragments as they come never sees half a character."""
    text = "日本語 ü 🙂"
    await stage.succeeds(A("pieces", {"text": "p"}, {"out": "r"}), *bytewise("p", text.encode()), r=[text])


@scenario("ET-29", "E-040", function="items")
async def json_split_everywhere(stage: Stage) -> None:
    """JSON with a fragment for each byte is read as a whole."""
    text = '{"name": "日本", "numbers": [1, -2.5e3, true, null], "empty": {}}'.encode()
    value = {"name": "日本", "numbers": [1, -2500.0, True, None], "empty": {}}
    await stage.succeeds(items(), *bytewise("p", text, JSON), r=[{"items": [value]}])


@scenario("ET-30", "E-048", "E-113", function=("upper", "pieces"))
async def invalid_utf8_leaf(stage: Stage) -> None:
    """Bytes that are no UTF-8 are a bad input of a text parameter."""
    leaf = F("p", m=TEXT, d=b"\xff\xfe")
    await stage.fails(BAD, upper(), leaf)
    await stage.fails(BAD, A("pieces", {"text": "p"}, {"out": "r"}), leaf)
    await stage.fails(BAD, A("pieces", {"text": "p"}, {"out": "r"}), F("p", m=TEXT, d="日".encode()[:2]))
    late = [F("p", 0, "+", m=TEXT, t="good "), F("p", 1, d=b"\xff")]
    await stage.fails(BAD, A("pieces", {"text": "p"}, {"out": "r"}), *late)
    await stage.fails(BAD, upper(), *late)


@scenario("ET-31", "E-048", "E-113", function=("items", "square"))
async def json_nan_leaf(stage: Stage) -> None:
    """NaN, an empty or broken payload, and a text where a number is needed are bad inputs."""
    for payload in ("NaN", "", '{"a": ', "1 2"):
        await stage.fails(BAD, items(), F("p", m=JSON, t=payload))
    await stage.fails(BAD, A("square", {"x": "p"}, {"out": "r"}), F("p", m=JSON, t='"word"'))


@scenario("E-041", function=("items", "upper"))
async def leaf_without_payload(stage: Stage) -> None:
    """A leaf with metadata and no payload is empty text."""
    await stage.succeeds(upper(), F("p", m=TEXT), r=[""])
    await stage.succeeds(items(), K("p", "a", "b"), F("a", m=TEXT), F("b", m=OCTETS), r=[{"items": ["", seen(b"")]}])


@scenario("E-043", function="items")
async def leaves_of_different_types(stage: Stage) -> None:
    """Text, JSON and bytes below one root reach the function as such, in their order."""
    leaves = [
        F("a", m=TEXT, t="a"),
        F("b", m=JSON, t='{"b": 1}'),
        F("c", m="image/png", d=PNG),
        F("d", m=OCTETS, t="d"),
    ]
    expected = ["a", {"b": 1}, seen(PNG), seen(b"d")]
    await stage.succeeds(items(), *tree("p", *leaves), r=[{"items": expected}])


@scenario("E-044", function="parts")
async def metadata_in_message_form(stage: Stage) -> None:
    """Role, file name, capture time and experimental metadata are headers of the message."""
    extra = AnyMessage()
    extra.Pack(StringValue(value="x"))
    metadata = pb.ChunkMetadata(
        mimetype="image/png",
        role="user",
        original_file_name="日本.png",
        capture_time=Timestamp(seconds=1_700_000_000, nanos=500_000_000),
        experimental=[extra],
    )
    session = await stage.succeeds(parts(), K("p", "a", "b"), F("a", m=metadata, d=PNG), F("b", m=TEXT, t="plain"))
    first, second = told(session)
    headers = first["headers"]
    expected = {
        "role": "user",
        "original-file-name": "日本.png",
        "experimental": base64.b64encode(extra.SerializeToString()).decode(),
    }
    if first["type"] != "image/png" or any(headers.get(name) != value for name, value in expected.items()):
        raise session.failure(f"{first}", f"type image/png and headers {expected}")
    if not headers.get("capture-time", "").startswith("2023-11-14T22:13:20.5"):
        raise session.failure(f"capture-time {headers.get('capture-time')!r}", "2023-11-14T22:13:20.5...")
    if set(second["headers"]) & {"role", "original-file-name", "capture-time", "experimental"}:
        raise session.failure(f"{second['headers']} of a leaf without them", "no such headers")


@scenario("E-045", function="items")
async def capture_time_orders_nothing(stage: Stage) -> None:
    """Leaves stay in the order of the tree, whenever they were captured."""
    leaves: list[pb.NodeFragment] = []
    for n in range(5):
        metadata = pb.ChunkMetadata(mimetype=TEXT, capture_time=Timestamp(seconds=1000 - 100 * n))
        leaves.append(F(f"leaf {n}", m=metadata, t=str(n)))
    expected = {"items": [str(n) for n in range(5)]}
    await stage.succeeds(items(), K("p", *(leaf.id for leaf in leaves)), *reversed(leaves), r=[expected])


@scenario("ET-72", "E-046", function=("upper", "items"))
async def text_markdown_as_text(stage: Stage) -> None:
    """Any text type, and the listed markup, decodes as text."""
    for media_type in ("text/markdown", "text/x-whatever", "application/x-latex"):
        await stage.succeeds(upper(), F("p", m=media_type, t="# hi"), r=["# HI"])
        await stage.succeeds(items(), F("p", m=media_type, t="# hi"), r=[{"items": ["# hi"]}])


@scenario("ET-71", "E-047", "E-113", function=("octets", "kind", "items", "upper"))
async def unsupported_mime(stage: Stage) -> None:
    """An image reaches a parameter of bytes, or without a type, as bytes; for a text parameter it is a bad input."""
    image = F("p", m="image/png", d=PNG)
    await stage.succeeds(OCTETS_OF_P, image, r=[PNG])
    await stage.succeeds(KIND_OF_P, image, r=[{"value": seen(PNG)}])
    await stage.succeeds(items(), image, r=[{"items": [seen(PNG)]}])
    await stage.fails(BAD, upper(), image)


@scenario("ET-08", "E-049", "E-041", function=("upper", "items", "parts", "marks"))
async def end_of_turn_marker(stage: Stage) -> None:
    """EndOfTurn is skipped for payload parameters, visible in message form, and never decoded."""
    frames: list[Part] = [K("p", "a", "e"), HI_A, F("e", m=EOT)]
    watch = await stage.watch("upper.calls")
    session = await stage.succeeds(upper(), *frames)
    if (met := "".join(session.read("r"))) != "HI":
        raise session.failure(repr(met), "'HI'")
    await watch.stays("upper.calls", by=1)
    await stage.succeeds(items(), *frames, r=[{"items": ["hi"]}])
    session = await stage.succeeds(parts(), *frames)
    types = [part["type"] for part in told(session)]
    if types != [TEXT, EOT]:
        raise session.failure(f"the types {types}", f"{[TEXT, EOT]}")


@scenario("E-049", "E-047", function=("items", "upper"))
async def other_protobuf_types(stage: Stage) -> None:
    """A protobuf type without a codec is bytes for a function that takes bytes, and an error for others."""
    leaf = F("p", m="application/x-protobuf; type=Whatever", d=b"\x08\x01")
    await stage.succeeds(items(), leaf, r=[{"items": [seen(b"\x08\x01")]}])
    await stage.fails(BAD, upper(), leaf)


HI_A = F("a", m=TEXT, t=HI.chunk_fragment.data.decode())


def told(session: Session) -> list[dict[str, Any]]:
    """The result of the action ``parts`` on output r."""
    values = session.read("r")
    if len(values) != 1 or not isinstance(values[0], dict) or "items" not in values[0]:
        raise session.failure(f"{values} from parts", "one object with items")
    found: list[dict[str, Any]] = values[0]["items"]
    return found
